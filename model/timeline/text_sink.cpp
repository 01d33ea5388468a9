#include "model/timeline/text_sink.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace foretrain {

class TextSink::Impl {
 public:
  std::string target, temporary;
  std::FILE* plain = nullptr;
  gzFile compressed = nullptr;
  std::string buffer;
  bool failed = false;
  bool closed = false;

  void flush() {
    if (buffer.empty()) return;
    if (plain != nullptr) {
      failed = failed || std::fwrite(buffer.data(), 1, buffer.size(), plain) != buffer.size();
    } else {
      failed = failed || gzwrite(compressed, buffer.data(), static_cast<unsigned>(buffer.size())) <= 0;
    }
    buffer.clear();
  }
};

TextSink::TextSink(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextSink::TextSink(TextSink&&) noexcept = default;

Expected<TextSink> TextSink::open(const std::string& file) {
  auto impl = std::make_unique<Impl>();
  impl->target = file;
  impl->temporary = file + ".partial";
  if (file.ends_with(".gz")) {
    impl->compressed = gzopen(impl->temporary.c_str(), "wb6");
  } else {
    impl->plain = std::fopen(impl->temporary.c_str(), "wb");
  }
  if (impl->plain == nullptr && impl->compressed == nullptr) {
    return fail(Error{ErrorCode::io,
                      {file, 0, 0, ""},
                      fmt::format("cannot be written: {}", std::strerror(errno)),
                      "check that the folder exists and may be written to"});
  }
  return TextSink(std::move(impl));
}

TextSink::~TextSink() {
  if (impl_ == nullptr || impl_->closed) return;
  if (impl_->plain != nullptr) std::fclose(impl_->plain);
  if (impl_->compressed != nullptr) gzclose(impl_->compressed);
  std::remove(impl_->temporary.c_str());
}

void TextSink::write(std::string_view text) {
  constexpr std::size_t kBlock = std::size_t{1} << 18;
  impl_->buffer.append(text);
  if (impl_->buffer.size() >= kBlock) impl_->flush();
}

Expected<void> TextSink::close() {
  impl_->flush();
  if (impl_->plain != nullptr) impl_->failed = std::fclose(impl_->plain) != 0 || impl_->failed;
  if (impl_->compressed != nullptr) impl_->failed = gzclose(impl_->compressed) != Z_OK || impl_->failed;
  impl_->closed = true;
  if (impl_->failed || std::rename(impl_->temporary.c_str(), impl_->target.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    std::remove(impl_->temporary.c_str());
    return fail(Error{ErrorCode::io,
                      {impl_->target, 0, 0, ""},
                      fmt::format("cannot be written: {}", why),
                      "check the free space and the folder's permissions"});
  }
  return {};
}

}  // namespace foretrain
