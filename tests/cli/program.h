// Runs the built program as a person would and gives back what it printed and its exit code.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace foretrain::test {

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

inline std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A folder of its own, removed at the end.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "foretrain_test_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline Outcome run_shell(const std::string& command, const std::filesystem::path& folder) {
  const Scratch scratch;
  const std::string out = (scratch.path() / "out").string();
  const std::string err = (scratch.path() / "err").string();
  const std::string line = "cd " + shell_quoted(folder.string()) + " && ( " + command + " ) >" +
                           shell_quoted(out) + " 2>" + shell_quoted(err) + " </dev/null";
  const int status = std::system(line.c_str());
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = file_text(out);
  outcome.err = file_text(err);
  return outcome;
}

// The program with these arguments, run in `folder`; ended after a minute (exit code 124).
inline Outcome run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  std::string command = "timeout 60 " + shell_quoted(FORETRAIN_BINARY_DIR "/foretrain");
  for (const std::string& argument : arguments) command += " " + shell_quoted(argument);
  return run_shell(command, folder);
}

}  // namespace foretrain::test
