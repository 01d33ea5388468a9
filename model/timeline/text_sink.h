// Text into a file, compressed when its name ends in .gz, written beside the target and renamed at the end.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "model/base/error.h"

namespace foretrain {

class TextSink {
 public:
  // Errors (io): the file cannot be made.
  static Expected<TextSink> open(const std::string& file);
  TextSink(TextSink&&) noexcept;
  TextSink& operator=(TextSink&&) = delete;
  ~TextSink();  // without close() the target is left as it was

  void write(std::string_view text);
  // Errors (io): anything since open failed, such as a full disk.
  Expected<void> close();

 private:
  class Impl;
  explicit TextSink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrain
