#include "runtime.h"
#include <CLI/CLI.hpp>
