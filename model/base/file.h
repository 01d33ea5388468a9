// Whole files in and out, with the reason when it does not work. Errors have code io (exit code 3).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "model/base/error.h"

namespace foretrain {

inline constexpr std::size_t kDefaultFileLimit = std::size_t{256} << 20;

// The bytes of a file. Fails when it does not exist, is a folder, cannot be read, or is larger than
// max_bytes.
Expected<std::string> read_file(const std::string& path, std::size_t max_bytes = kDefaultFileLimit);

// Writes beside the target and renames over it, so that a reader sees the old or the new content, never half
// of it. A target that is not an ordinary file (a pipe, /dev/stdout) is written directly.
Expected<void> write_file_atomic(const std::string& path, std::string_view content);

}  // namespace foretrain
