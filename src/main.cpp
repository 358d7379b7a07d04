// The executable: hands the command line to the verbs of src/cli.
#include <cstdio>

int main() {
  std::puts("neap " NEAP_VERSION);
  return 0;
}
