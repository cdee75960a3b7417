// The program around a producer: compile it together with the file of the producer. Manual: docs/adapters.md.
#include "weir-eudaq.hpp"

int main(int argc, char **argv) { return weir::eudaq_adapter::main(argc, argv); }
