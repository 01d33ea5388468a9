// The command line as a function: parses, runs one verb, returns the exit code.
//   0 fine   1 the answer is "no" (does not fit, out of bounds)   2 usage or input   3 I/O   70 our bug
#pragma once

namespace foretrain {

int run_app(int argc, const char* const* argv);

}  // namespace foretrain
