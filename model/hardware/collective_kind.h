// The collectives and transfers that strategies are made of, and NCCL's ways of doing them.
#pragma once

#include <cstdint>
#include <string_view>

namespace foretrain {

// The number of bytes that goes with a kind follows nccl-tests: all_reduce, broadcast, reduce and
// send_recv: the buffer of one rank; all_gather: the gathered result (sum over ranks);
// reduce_scatter: the whole input of one rank; all_to_all: the whole input of one rank.
enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send_recv
};
enum class Algorithm : std::uint8_t { ring, tree, nvls };
enum class Protocol : std::uint8_t { ll, ll128, simple };

constexpr std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::send_recv:
      return "send_recv";
  }
  return "?";
}
constexpr std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return "ring";
    case Algorithm::tree:
      return "tree";
    case Algorithm::nvls:
      return "nvls";
  }
  return "?";
}
constexpr std::string_view name_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::ll:
      return "ll";
    case Protocol::ll128:
      return "ll128";
    case Protocol::simple:
      return "simple";
  }
  return "?";
}

}  // namespace foretrain
