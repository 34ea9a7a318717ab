// Uses the installed C++ wrapper: the same error, as an exception.
#include <hybrid/runtime.hpp>

#include <cstring>
#include <iostream>

int main() {
  hyb::Runtime runtime;
  try {
    hyb::Model model(runtime, "absent.hbx");
  } catch (const hyb::Error &error) {
    std::cout << hyb_status_name(error.status()) << ": " << error.what()
              << "\n";
    return std::strstr(error.what(), "absent.hbx") ? 0 : 1;
  }
  return 1;
}
