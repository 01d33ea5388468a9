#include "calibrate/kernels/rows.h"

#include <gtest/gtest.h>

#include <string>

#include "calibrate/kernels/gpu_name.h"

namespace foretrain {
namespace {

const std::string kHeader = "gpu,op,dtype,batch,m,n,k,layout,time_us,tflops,notes\n";

KernelRow only_row(const std::string& line) {
  const auto table = parse_kernel_rows(kHeader + line + "\n", "t.csv");
  EXPECT_TRUE(table.has_value()) << (table ? "" : to_text(table.error()));
  EXPECT_EQ(table->rows.size(), 1u);
  return table->rows.at(0);
}
std::string first_error(const std::string& text) {
  const auto table = parse_kernel_rows(text, "t.csv");
  EXPECT_FALSE(table.has_value());
  return table ? "" : to_text(table.error());
}

TEST(GpuNames, SpellingsOfPublishedTablesAreKnown) {
  EXPECT_EQ(gpu_of_table("A100-80GB-PCIe")->name, "a100_80_pcie");
  EXPECT_EQ(gpu_of_table("NVIDIA A30 (56 SM, 1440 MHz, 933 GB/s, 165 W)")->name, "a30");
  EXPECT_EQ(gpu_of_table("RTX 3090 Ti")->name, "rtx3090ti");
  EXPECT_EQ(gpu_of_table("NVIDIA GeForce RTX 4090")->name, "rtx4090");
  EXPECT_EQ(gpu_of_table("V100")->name, "v100_sxm2_16");
  EXPECT_EQ(gpu_of_table("TitanX_Pascal")->name, "titanx_pascal");
  EXPECT_EQ(gpu_of_table("B200-SXM")->name, "b200");
  EXPECT_EQ(gpu_of_table("h100_pcie")->name, "h100_pcie");
  EXPECT_EQ(gpu_of_table("MI300X"), nullptr);
  EXPECT_EQ(gpu_of_table(""), nullptr);
}

TEST(KernelRows, MatmulRowsKeepShapeDtypeAndOutput) {
  const KernelRow row =
      only_row("B200-SXM,matmul,bf16,1,4096,512,2048,NT,15.18,1131.56,accumulate=True out=fp32");
  EXPECT_EQ(row.kind, KernelKind::matmul_tensor);
  EXPECT_EQ(row.matmul.m, 4096);
  EXPECT_EQ(row.matmul.n, 512);
  EXPECT_EQ(row.matmul.k, 2048);
  EXPECT_EQ(row.matmul.input, DType::bf16);
  EXPECT_EQ(row.matmul.output, DType::fp32);
  EXPECT_EQ(row.matmul.layout, MatmulLayout::nt);
  EXPECT_TRUE(row.accumulate);
  EXPECT_EQ(row.measured_us, 15.18);
  EXPECT_EQ(row.line, 2);
}

TEST(KernelRows, ARateStandsInForAMissingTime) {
  const KernelRow row = only_row("A100,bmm,fp16,2,1000,1000,1000,,,200,");
  EXPECT_NEAR(row.measured_us, 2 * 2e9 / 200e12 * 1e6, 1e-9);
}

TEST(KernelRows, Fp16OnAPascalIsDoneByOrdinaryCores) {
  EXPECT_EQ(only_row("P100,gemm,fp16 in/fp32 acc,1,64,64,64,NN,6,,").kind, KernelKind::matmul_ordinary);
  EXPECT_EQ(only_row("V100,gemm,fp16 in/fp32 acc,1,64,64,64,NN,6,,").kind, KernelKind::matmul_tensor);
  EXPECT_EQ(only_row("RTX 3090 Ti,gemm,fp32(tf32),1,64,64,64,,6,,").kind, KernelKind::matmul_tensor);
}

TEST(KernelRows, GroupedMatmulAndAttentionAreReadFromNotes) {
  const KernelRow group = only_row(
      "B200-SXM,group_matmul,bf16,,,,,,,449.29,\"ng=160, M=154, N=3072, K=5120, dtype=bf16, out_dtype=bf16, "
      "accumulate=False\"");
  EXPECT_EQ(group.matmul.batch, 160);
  EXPECT_EQ(group.matmul.m, 154);
  EXPECT_FALSE(group.accumulate);
  EXPECT_NEAR(group.measured_us, 2.0 * 160 * 154 * 3072 * 5120 / 449.29e12 * 1e6, 1e-6);

  const KernelRow attention = only_row(
      "A100-80GB-PCIe,sdp_bwd,bf16,,,,,,,250.18,\"batch=1, seq_len=4096, head_num=128, kv_head_num=128, "
      "qk_head_dim=192, v_head_dim=128, qkv_contiguous=True\"");
  EXPECT_EQ(attention.kind, KernelKind::attention_backward);
  EXPECT_EQ(attention.attention.head_dim, 192);
  EXPECT_TRUE(attention.attention.causal);
}

TEST(KernelRows, TheAttentionFormIsToldByItsHeader) {
  const auto table = parse_kernel_rows(
      "gpu,op,dtype,batch,seq,q_heads,kv_heads,head_dim,window_left,window_right,causal,time_ms\n"
      "A30,FlashAttention fwd,fp16/bf16,2,512,32,8,128,-1,-1,1,0.103276\n"
      "A30,FlashAttention fwd,fp16/bf16,16,4096,32,8,56,128,1024,0,10.28\n",
      "a.csv");
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->rows[0].window.right, 0);
  EXPECT_EQ(table->rows[0].window.left, -1);
  EXPECT_EQ(table->rows[1].window.left, 128);
  EXPECT_EQ(table->rows[1].window.right, 1024);
  EXPECT_NEAR(table->rows[0].measured_us, 103.276, 1e-9);
}

TEST(KernelRows, WhatTheModelDoesNotCoverIsListedWithItsReason) {
  const auto table = parse_kernel_rows(kHeader +
                                           "A30,gemm,fp16,1,64,64,64,NN,6,,\n"
                                           "A30,softmax,fp16,,,,,,6,,\n"
                                           "A30,gemm,fp8_e4m3,1,64,64,64,NN,6,,\n"
                                           "MI300X,gemm,bf16,1,64,64,64,NN,6,,\n"
                                           "A30,gemm,fp16,1,64,64,64,NN,,,\n"
                                           "A30,gemm,fp16,1,64,64,64,NN,1e-300,,\n",
                                       "t.csv");
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->rows.size(), 1u);
  ASSERT_EQ(table->skipped.size(), 5u);
  EXPECT_EQ(table->skipped[0].reason, "no matmul shape (m, n, k)");
  EXPECT_EQ(table->skipped[2].reason, "no preset of this GPU");
  EXPECT_EQ(table->skipped[3].reason, "neither time nor rate");
}

TEST(KernelRows, WrongNumbersAreErrorsWithTheirPlace) {
  EXPECT_NE(first_error(kHeader + "A30,gemm,fp16,1,-64,64,64,NN,6,,\n").find("t.csv:2:"), std::string::npos);
  EXPECT_NE(first_error(kHeader + "A30,gemm,fp16,1,6.5,64,64,NN,6,,\n").find("whole number"),
            std::string::npos);
  EXPECT_NE(first_error(kHeader + "A30,gemm,fp16,1,64,64,64,NN,0,,\n").find("above 0"), std::string::npos);
  EXPECT_FALSE(first_error(kHeader + "A30,gemm,fp16,1,64,64,64,NN,nan,,\n").empty());
  EXPECT_FALSE(first_error(kHeader + "A30,gemm,fp16,1,64,64,1e30,NN,6,,\n").empty());
}

TEST(KernelRows, WrongTablesAreErrors) {
  EXPECT_NE(first_error("gpu,op,dtype,m,n,time_us\nA30,gemm,fp16,1,1,1\n").find("\"k\""), std::string::npos);
  EXPECT_NE(first_error("gpu,op,dtype,m,n,k\nA30,gemm,fp16,1,1,1\n").find("time_us"), std::string::npos);
  EXPECT_FALSE(first_error("").empty());
  const std::string unknown = first_error(kHeader + "Gaudi3,gemm,bf16,1,64,64,64,NN,6,,\n");
  EXPECT_NE(unknown.find("Gaudi3"), std::string::npos);
  EXPECT_NE(unknown.find("a100_80_pcie"), std::string::npos) << "names the presets";
  EXPECT_FALSE(read_kernel_rows("/nonexistent/kernels.csv").has_value());
}

}  // namespace
}  // namespace foretrain
