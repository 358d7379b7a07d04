#include "cli/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "cli/format.h"
#include "cli/machine_checks.h"

namespace neap::cli {
namespace {

std::string printed(const Table& table) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* file = ::open_memstream(&text, &size);
  Terminal terminal(file, file);
  table.print(terminal);
  std::fclose(file);
  std::string out(text, size);
  std::free(text);
  return out;
}

TEST(Table, AlignsByCharactersAndShowsNoControls) {
  Table table({"NAME", "X"});
  table.add({{"a"}, {"1"}});
  table.add({{"größe-5"}, {"2"}});
  table.add({{"e\033[31m"}, {"3"}});
  EXPECT_EQ(printed(table), "NAME     X\na        1\ngröße-5  2\ne?[31m   3\n");
}

TEST(Table, ShowsNoControlsOfEightBitsEither) {
  EXPECT_EQ(harmless("a\xc2\x9b"
                     "31mb\xc3\xa9\x7f"),
            "a?31mb\xc3\xa9?");
}

TEST(Format, AsPeopleRead) {
  EXPECT_EQ(length_text(350'000), "350ms");
  EXPECT_EQ(length_text(42'000'000), "42s");
  EXPECT_EQ(length_text(180'000'000), "3min");
  EXPECT_EQ(length_text(7'500'000'000), "2h05");
  EXPECT_EQ(length_text(90'000'000'000), "1d01h");
  EXPECT_EQ(length_text(-1'000'000), "-1s");
  EXPECT_EQ(memory_text(16384), "16GiB");
  EXPECT_EQ(memory_text(1500), "1500MiB");
  EXPECT_EQ(part_text(625'000), "62.5%");
}

// Every failed check has a remedy.
TEST(MachineChecks, FindsWhatIsMissing) {
  Machine machine;
  machine.cgroups = "/nonexistent";
  machine.driver = "/nonexistent";
  machine.path = "/nonexistent";
  machine.state_dir = "/proc/neap";
  for (const Check& check : check_machine(machine)) {
    EXPECT_EQ(check.remedy.empty(), check.state == "ok") << check.name;
    if (check.name == "cgroups" || check.name == "state") {
      EXPECT_NE(check.state, "ok") << check.name;
    }
    if (check.name == "driver") {
      EXPECT_EQ(check.state, "warning");
    }
  }
}

}  // namespace
}  // namespace neap::cli
