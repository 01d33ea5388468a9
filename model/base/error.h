// Errors that a user can cause, as values. Every reader returns all the errors it found, not the first.
// Asserts are for our own bugs and are never reachable from input.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace foretrain {

enum class ErrorCode {
  input,       // the file, table or value is wrong: exit code 2
  usage,       // the command line is wrong: exit code 2
  infeasible,  // well-formed, but the answer is "no" (does not fit): exit code 1
  io,          // cannot read or write: exit code 3
  internal,    // our bug: exit code 70
};

// Where the error stands. Empty file or line 0 mean unknown; columns and lines count from 1.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
  std::string path;  // dotted path inside the document: "parallel.tp"
};

struct Error {
  ErrorCode code = ErrorCode::input;
  Location where;
  std::string message;  // what came and what was expected: "is 0; expected a whole number from 1"
  std::string hint;     // what to write instead; may be empty
};

using Errors = std::vector<Error>;

template <typename T>
using Expected = tl::expected<T, Errors>;

inline tl::unexpected<Errors> fail(Error error) {
  Errors errors;
  errors.push_back(std::move(error));
  return tl::unexpected<Errors>(std::move(errors));
}
inline tl::unexpected<Errors> fail(ErrorCode code, std::string message, std::string hint = {}) {
  return fail(Error{code, {}, std::move(message), std::move(hint)});
}
inline tl::unexpected<Errors> fail(Errors errors) { return tl::unexpected<Errors>(std::move(errors)); }

// "file:line:column: path: message\n  hint: ..."; parts that are unknown are left out.
std::string to_text(const Error& error);
std::string to_text(const Errors& errors);

}  // namespace foretrain
