// The foretrain program. All of it is in cli/app.h, so that tests can call it without a process.
#include "cli/app.h"

int main(int argc, char** argv) { return foretrain::run_app(argc, argv); }
