// Options of `neap simulate`. For command_line.cpp alone.
#pragma once

#include "cli/what_if.h"

namespace CLI {
class App;
}

namespace neap::cli {

void add_what_if(CLI::App* app, WhatIfOptions& o);

}  // namespace neap::cli
