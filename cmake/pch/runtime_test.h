#include "runtime.h"
#include <gtest/gtest.h>
#include <random>
