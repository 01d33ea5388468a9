// Reads tests/model/ops/pytorch/*.csv: the ATen ops that PyTorch 2.7.1 issued for one forward and backward of
// small transformers (recorded by record.py beside them).
#pragma once

#include <cstdint>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace foretrain {

struct RecordedTensor {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t elements() const {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  std::int64_t bytes() const {
    return elements() * (dtype == "int64" ? 8 : dtype == "float32" ? 4 : dtype == "bool" ? 1 : 2);
  }
};

struct RecordedOp {
  bool backward = false;
  std::string name;
  std::vector<RecordedTensor> inputs, outputs;
  std::int64_t alive_bytes = 0;  // with inputs and outputs, without parameters
  bool is_matmul() const { return name == "mm" || name == "addmm" || name == "bmm"; }
};

inline std::vector<RecordedTensor> parse_tensors(const std::string& text) {
  std::vector<RecordedTensor> tensors;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    RecordedTensor tensor;
    std::istringstream parts(word);
    std::getline(parts, tensor.dtype, 'x');
    for (std::string size; std::getline(parts, size, 'x');) tensor.shape.push_back(std::stoll(size));
    tensors.push_back(tensor);
  }
  return tensors;
}

inline std::vector<RecordedOp> read_recorded(const std::string& name) {
  std::ifstream file(std::string(FORETRAIN_SOURCE_DIR) + "/tests/model/ops/pytorch/" + name + ".csv");
  std::vector<RecordedOp> ops;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string phase, inputs, outputs, alive;
    RecordedOp op;
    std::getline(fields, phase, ',');
    std::getline(fields, op.name, ',');
    std::getline(fields, inputs, ',');
    std::getline(fields, outputs, ',');
    std::getline(fields, alive, ',');
    op.backward = phase == "backward";
    op.inputs = parse_tensors(inputs);
    op.outputs = parse_tensors(outputs);
    op.alive_bytes = std::stoll(alive);
    ops.push_back(op);
  }
  return ops;
}

}  // namespace foretrain
