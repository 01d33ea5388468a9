#include "model/base/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace foretrain {
namespace {

std::string reason(int error_number) { return std::generic_category().message(error_number); }

tl::unexpected<Errors> io_error(const std::string& path, std::string message, std::string hint = {}) {
  return fail(Error{ErrorCode::io, Location{path, 0, 0, {}}, std::move(message), std::move(hint)});
}

// Closes a descriptor at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  // 0, or errno: a full disk may show only here.
  int close() {
    const int result = ::close(number_);
    number_ = -1;
    return result == 0 ? 0 : errno;
  }

 private:
  int number_;
};

int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// Follows symbolic links, so that the file they lead to is replaced and not the link.
std::string resolved(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::canonical(path, ignored);
  return ignored ? path : real.string();
}

Expected<void> write_directly(const std::string& path, std::string_view content) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.number() < 0) return io_error(path, fmt::format("cannot be written: {}", reason(errno)));
  int error_number = write_all(file.number(), content);
  if (error_number == 0) error_number = file.close();
  if (error_number != 0) return io_error(path, fmt::format("cannot be written: {}", reason(error_number)));
  return {};
}

}  // namespace

Expected<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  if (path.find('\0') != std::string::npos)
    return io_error(path.c_str(), "cannot be read: the name has a NUL byte");
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) {
    if (errno == ENOENT) return io_error(path, "does not exist");
    return io_error(path, fmt::format("cannot be read: {}", reason(errno)));
  }
  struct stat status {};
  if (::fstat(file.number(), &status) != 0)
    return io_error(path, fmt::format("cannot be read: {}", reason(errno)));
  if (S_ISDIR(status.st_mode)) return io_error(path, "is a folder; expected a file");

  const auto too_large = [&] {
    return io_error(path, fmt::format("is larger than {} bytes, the most that is read", max_bytes));
  };
  if (S_ISREG(status.st_mode) && status.st_size > 0 &&
      static_cast<std::uintmax_t>(status.st_size) > max_bytes)
    return too_large();

  std::string content;
  if (S_ISREG(status.st_mode)) content.reserve(static_cast<std::size_t>(status.st_size));
  std::string block(std::size_t{1} << 16, '\0');
  for (;;) {
    const ssize_t got = ::read(file.number(), block.data(), block.size());
    if (got == 0) return content;
    if (got < 0) {
      if (errno == EINTR) continue;
      return io_error(path, fmt::format("cannot be read: {}", reason(errno)));
    }
    if (static_cast<std::size_t>(got) > max_bytes - content.size()) return too_large();
    content.append(block, 0, static_cast<std::size_t>(got));
  }
}

Expected<void> write_file_atomic(const std::string& path, std::string_view content) {
  if (path.find('\0') != std::string::npos)
    return io_error(path.c_str(), "cannot be written: the name has a NUL byte");
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return io_error(path, "is a folder; expected the name of a file");
  if (exists && !S_ISREG(status.st_mode)) return write_directly(path, content);

  const std::string target = exists ? resolved(path) : path;
  std::string temporary = target + ".XXXXXX";
  Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.number() < 0) {
    const int error_number = errno;
    return io_error(path, fmt::format("cannot be written: {}", reason(error_number)),
                    error_number == ENOENT ? "make its folder first" : "");
  }
  // mkostemp makes files private; give the permissions of the old file, or those a new file would get.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const mode_t mode = exists ? (status.st_mode & 07777U) : (0666U & ~mask);
  int error_number = ::fchmod(file.number(), mode) == 0 ? 0 : errno;
  if (error_number == 0) error_number = write_all(file.number(), content);
  if (error_number == 0 && ::fsync(file.number()) != 0) error_number = errno;
  if (error_number == 0) error_number = file.close();
  if (error_number == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error_number = errno;
  if (error_number == 0) return {};
  ::unlink(temporary.c_str());
  return io_error(path, fmt::format("cannot be written: {}", reason(error_number)));
}

}  // namespace foretrain
