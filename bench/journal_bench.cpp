// How many durable records share one fsync under load, and the journal's rate against a bare
// SQLite writer: the same columns, the same payloads, transactions of the same sizes, the same
// run. Prints lines for people, then one JSON object. Exit 1 when a target is missed.
//
//   journal_bench [--records N] [--rounds N] [--directory D]
#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "journal/journal.h"
#include "journal/reader.h"
#include "journal/vfs_probe.h"

namespace neap::journal {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double target_per_fsync = 200;
constexpr double target_ratio = 0.7;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "journal_bench: %s\n", what.c_str());
  std::exit(2);
}

// A turn of the loop: an event, often a decision or two. Payloads as the codec writes them: tens
// of bytes, now and then a submission of half a kilobyte.
struct Load {
  std::vector<std::string> payloads;

  Load() {
    std::uint64_t random = 42;
    for (int i = 0; i < 4096; ++i) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      const std::size_t size = (random >> 60) == 0 ? 480 : 24 + (random >> 33) % 96;
      std::string payload(size, '\0');
      for (char& c : payload) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        c = static_cast<char>(random >> 56);
      }
      payloads.push_back(std::move(payload));
    }
  }

  [[nodiscard]] const std::string& payload(std::uint64_t n) const { return payloads[n % 4096]; }
};

struct Measured {
  double rate = 0;  // records a second
  double per_fsync = 0;
  double cpu_us = 0;                   // per record
  std::vector<std::uint64_t> commits;  // the records of each
};

// Appends as fast as back-pressure allows.
Measured run_journal(const Load& load, const std::string& path, std::uint64_t records) {
  std::vector<std::uint64_t> commits;  // of the commit thread until the journal is closed
  std::uint64_t reported = 0;
  Callbacks callbacks{.on_durable = [&](std::uint64_t sequence) {
    commits.push_back(sequence - reported);
    reported = sequence;
  }};
  Measured measured;
  const std::uint64_t syncs = file_counters().syncs;
  const double cpu = cpu_seconds();
  auto journal = Journal::open({.path = path}, std::move(callbacks));
  if (!journal) die(to_string(journal.error()));
  const auto start = Clock::now();
  std::uint64_t n = 0;
  Batch batch;
  while (n < records) {
    while (!journal->has_room()) std::this_thread::sleep_for(std::chrono::microseconds(200));
    batch.clear();
    const std::uint64_t in_turn = 1 + n % 3;
    for (std::uint64_t i = 0; i < in_turn; ++i, ++n) {
      batch.add(Time(static_cast<std::int64_t>(n)),
                i == 0 ? RecordKind::event : RecordKind::decision,
                static_cast<std::uint16_t>(n % 26), bytes_of(load.payload(n)));
    }
    if (auto appended = journal->append(batch); !appended) {
      die(to_string(appended.error()));
    }
  }
  if (auto flushed = journal->flush(); !flushed) die(to_string(flushed.error()));
  measured.rate = static_cast<double>(n) / seconds_since(start);
  measured.cpu_us = (cpu_seconds() - cpu) * 1e6 / static_cast<double>(n);
  measured.per_fsync = static_cast<double>(n) / static_cast<double>(file_counters().syncs - syncs);
  measured.commits = std::move(commits);
  return measured;
}

void must(int status, sqlite3* connection) {
  if (status != SQLITE_OK && status != SQLITE_DONE) die(sqlite3_errmsg(connection));
}

// What anybody would write first: prepared insert, transactions of the given sizes, nothing else.
Measured run_bare(const Load& load, const std::string& path,
                  const std::vector<std::uint64_t>& transactions) {
  sqlite3* connection = nullptr;
  must(sqlite3_open_v2(path.c_str(), &connection,
                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                       probed_vfs().c_str()),
       connection);
  must(sqlite3_exec(connection,
                    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                    "PRAGMA wal_autocheckpoint = 4096;"
                    "CREATE TABLE record(sequence INTEGER PRIMARY KEY, time_us INTEGER NOT NULL,"
                    " kind INTEGER NOT NULL, type INTEGER NOT NULL, payload BLOB NOT NULL,"
                    " chain BLOB NOT NULL)",
                    nullptr, nullptr, nullptr),
       connection);
  sqlite3_stmt* insert = nullptr;
  must(sqlite3_prepare_v2(connection, "INSERT INTO record VALUES(?, ?, ?, ?, ?, ?)", -1, &insert,
                          nullptr),
       connection);
  Measured measured;
  const char chain[16] = {};
  const std::uint64_t syncs = file_counters().syncs;
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  std::uint64_t n = 0;
  for (const std::uint64_t size : transactions) {
    must(sqlite3_exec(connection, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), connection);
    for (std::uint64_t i = 0; i < size; ++i, ++n) {
      const std::string& payload = load.payload(n);
      sqlite3_bind_int64(insert, 1, static_cast<sqlite3_int64>(n + 1));
      sqlite3_bind_int64(insert, 2, static_cast<sqlite3_int64>(n));
      sqlite3_bind_int64(insert, 3, 1);
      sqlite3_bind_int64(insert, 4, static_cast<sqlite3_int64>(n % 26));
      sqlite3_bind_blob(insert, 5, payload.data(), static_cast<int>(payload.size()), SQLITE_STATIC);
      sqlite3_bind_blob(insert, 6, chain, sizeof chain, SQLITE_STATIC);
      must(sqlite3_step(insert), connection);
      sqlite3_reset(insert);
    }
    must(sqlite3_exec(connection, "COMMIT", nullptr, nullptr, nullptr), connection);
  }
  measured.rate = static_cast<double>(n) / seconds_since(start);
  measured.cpu_us = (cpu_seconds() - cpu) * 1e6 / static_cast<double>(n);
  measured.per_fsync = static_cast<double>(n) / static_cast<double>(file_counters().syncs - syncs);
  sqlite3_finalize(insert);
  sqlite3_close(connection);
  return measured;
}

struct Paced {
  double offered = 0;
  double per_fsync = 0;
  std::int64_t p50_us = 0;
  std::int64_t p99_us = 0;
};

// An open-loop load of a fixed rate: what an event waits until it is durable.
Paced run_paced(const Load& load, const std::string& path, double rate) {
  std::mutex mutex;
  std::vector<Clock::time_point> appended;  // by sequence - 1
  std::vector<std::int64_t> waits;
  Callbacks callbacks{.on_durable = [&](std::uint64_t sequence) {
    const auto now = Clock::now();
    const std::lock_guard lock(mutex);
    while (waits.size() < sequence) {
      waits.push_back(
          std::chrono::duration_cast<std::chrono::microseconds>(now - appended[waits.size()])
              .count());
    }
  }};
  const std::uint64_t syncs = file_counters().syncs;
  const auto total = static_cast<std::uint64_t>(rate * 1.5);
  auto journal = Journal::open({.path = path}, std::move(callbacks));
  if (!journal) die(to_string(journal.error()));
  const auto start = Clock::now();
  Batch batch;
  for (std::uint64_t n = 0; n < total;) {
    const auto due = std::min(total, static_cast<std::uint64_t>(seconds_since(start) * rate));
    for (; n < due; ++n) {
      batch.clear();
      batch.add(Time(static_cast<std::int64_t>(n)), RecordKind::event, 1,
                bytes_of(load.payload(n)));
      {
        const std::lock_guard lock(mutex);
        appended.push_back(Clock::now());
      }
      if (auto done = journal->append(batch); !done) die(to_string(done.error()));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (auto flushed = journal->flush(); !flushed) die(to_string(flushed.error()));
  std::sort(waits.begin(), waits.end());
  return {rate, static_cast<double>(total) / static_cast<double>(file_counters().syncs - syncs),
          waits[waits.size() / 2], waits[waits.size() * 99 / 100]};
}

double replay_rate(const std::string& path, std::uint64_t& bytes_per_record) {
  const auto start = Clock::now();
  auto reader = Reader::open(path);
  if (!reader) die(to_string(reader.error()));
  auto count = reader->verify();
  if (!count) die(to_string(count.error()));
  bytes_per_record = fs::file_size(path) / *count;
  return static_cast<double>(*count) / seconds_since(start);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Arguments {
  std::uint64_t records = 300'000;
  int rounds = 5;
  std::string directory = fs::temp_directory_path().string();
};

Arguments parse(int count, char** values) {
  Arguments arguments;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = values[i];
    if (name == "--records") arguments.records = std::strtoull(values[i + 1], nullptr, 10);
    if (name == "--rounds") arguments.rounds = std::atoi(values[i + 1]);
    if (name == "--directory") arguments.directory = values[i + 1];
  }
  if (arguments.records < 1'000 || arguments.rounds < 1) die("too few records or rounds");
  return arguments;
}

int run(const Arguments& arguments) {
  std::string directory = arguments.directory + "/neap-journal-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) die("cannot create " + directory);
  const Load load;
  std::vector<double> ratios, rates, bare_rates, per_fsync, cpu, bare_cpu;
  std::uint64_t bytes_per_record = 0;
  double replayed = 0;
  for (int round = 0; round < arguments.rounds; ++round) {
    const std::string path = directory + "/" + std::to_string(round);
    const Measured journal = run_journal(load, path + ".db", arguments.records);
    const Measured bare = run_bare(load, path + ".bare", journal.commits);
    std::printf(
        "round %d: journal %8.0f records/s, %6.0f per fsync, %.2f us CPU each | bare "
        "%8.0f records/s, %.2f us CPU | ratio %.2f (%zu transactions)\n",
        round + 1, journal.rate, journal.per_fsync, journal.cpu_us, bare.rate, bare.cpu_us,
        journal.rate / bare.rate, journal.commits.size());
    rates.push_back(journal.rate);
    bare_rates.push_back(bare.rate);
    ratios.push_back(journal.rate / bare.rate);
    per_fsync.push_back(journal.per_fsync);
    cpu.push_back(journal.cpu_us);
    bare_cpu.push_back(bare.cpu_us);
    replayed = replay_rate(path + ".db", bytes_per_record);
  }
  std::string paced_json;
  for (const double rate : {2'000.0, 20'000.0, 50'000.0, 100'000.0}) {
    const Paced paced =
        run_paced(load, directory + "/paced" + std::to_string(static_cast<int>(rate)), rate);
    std::printf(
        "paced %6.0f records/s: %5.0f per fsync, durable after %lld us (p50), %lld us (p99)\n",
        paced.offered, paced.per_fsync, static_cast<long long>(paced.p50_us),
        static_cast<long long>(paced.p99_us));
    paced_json += (paced_json.empty() ? "" : ",") + std::string("{\"rate\":") +
                  std::to_string(static_cast<int>(rate)) +
                  ",\"per_fsync\":" + std::to_string(paced.per_fsync) +
                  ",\"p50_us\":" + std::to_string(paced.p50_us) +
                  ",\"p99_us\":" + std::to_string(paced.p99_us) + "}";
  }
  fs::remove_all(directory);
  const double worst = *std::min_element(per_fsync.begin(), per_fsync.end());
  const bool met = worst >= target_per_fsync && median(ratios) >= target_ratio;
  std::printf("durable records per fsync, lowest round: %.0f (target %.0f)\n", worst,
              target_per_fsync);
  std::printf("rate against bare SQLite, median round: %.2f (target %.2f)\n", median(ratios),
              target_ratio);
  std::printf("verified replay: %.0f records/s; %llu bytes on disk a record\n", replayed,
              static_cast<unsigned long long>(bytes_per_record));
  std::printf(
      "{\"bench\":\"journal\",\"records\":%llu,\"rounds\":%d,\"per_fsync_lowest\":%.1f,"
      "\"ratio_median\":%.3f,\"journal_rate_median\":%.0f,\"bare_rate_median\":%.0f,"
      "\"cpu_us\":%.3f,\"bare_cpu_us\":%.3f,\"replay_rate\":%.0f,\"bytes_per_record\":%llu,"
      "\"paced\":[%s],\"met\":%s}\n",
      static_cast<unsigned long long>(arguments.records), arguments.rounds, worst, median(ratios),
      median(rates), median(bare_rates), median(cpu), median(bare_cpu), replayed,
      static_cast<unsigned long long>(bytes_per_record), paced_json.c_str(),
      met ? "true" : "false");
  return met ? 0 : 1;
}

}  // namespace
}  // namespace neap::journal

int main(int count, char** values) {
  return neap::journal::run(neap::journal::parse(count, values));
}
