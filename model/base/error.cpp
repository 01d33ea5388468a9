#include "model/base/error.h"

#include <fmt/format.h>

namespace foretrain {

std::string to_text(const Error& error) {
  std::string text = error.where.file;
  if (error.where.line > 0) text += fmt::format(":{}:{}", error.where.line, error.where.column);
  if (!text.empty()) text += ": ";
  if (!error.where.path.empty()) text += error.where.path + ": ";
  text += error.message;
  if (!error.hint.empty()) text += "\n  hint: " + error.hint;
  return text;
}

std::string to_text(const Errors& errors) {
  std::string text;
  for (const Error& error : errors) {
    if (!text.empty()) text += '\n';
    text += to_text(error);
  }
  return text;
}

}  // namespace foretrain
