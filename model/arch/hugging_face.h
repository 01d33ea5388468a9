// Imports a Hugging Face config.json of the gpt2, llama, qwen2 or mistral family.
#pragma once

#include <string>

#include "model/arch/transformer.h"
#include "model/base/error.h"

namespace foretrain {

// Keys that Foretrain does not use are allowed, since these files hold many. Errors: another model_type
// (the message names those that are supported), missing sizes, contradictions; all with file:line:column.
Expected<TransformerConfig> import_hugging_face(const std::string& text, const std::string& file);

}  // namespace foretrain
