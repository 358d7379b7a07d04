#include "journal/schema.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include "journal/vfs_probe.h"

namespace neap::journal {
namespace {

// "neap" in ASCII, so that file(1) and we can tell a journal from any other database.
constexpr std::int64_t application_id = 0x6e656170;

constexpr const char* create_tables = R"sql(
BEGIN EXCLUSIVE;
CREATE TABLE head(
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  genesis  BLOB NOT NULL,
  sequence INTEGER NOT NULL,
  time_us  INTEGER NOT NULL,
  chain    BLOB NOT NULL);
CREATE TABLE record(
  sequence INTEGER PRIMARY KEY,
  time_us  INTEGER NOT NULL,
  kind     INTEGER NOT NULL,
  type     INTEGER NOT NULL,
  payload  BLOB NOT NULL,
  chain    BLOB NOT NULL);
CREATE TABLE snapshot(
  sequence INTEGER PRIMARY KEY,
  time_us  INTEGER NOT NULL,
  size     INTEGER NOT NULL,
  checksum BLOB NOT NULL,
  chain    BLOB NOT NULL);
CREATE TABLE snapshot_part(
  sequence INTEGER NOT NULL,
  part     INTEGER NOT NULL,
  bytes    BLOB NOT NULL,
  PRIMARY KEY (sequence, part));
CREATE TABLE segment(
  number        INTEGER PRIMARY KEY,
  first         INTEGER NOT NULL,
  last          INTEGER NOT NULL UNIQUE,
  first_time_us INTEGER NOT NULL,
  last_time_us  INTEGER NOT NULL,
  chain_before  BLOB NOT NULL,
  chain_last    BLOB NOT NULL,
  closing       BLOB NOT NULL,
  checksum      BLOB NOT NULL,
  raw           INTEGER NOT NULL);
INSERT INTO head SELECT 1, r, 0, 0, r FROM (SELECT randomblob(16) AS r);
PRAGMA application_id = 1852137840;
PRAGMA user_version = 4;
COMMIT;
)sql";

Result<void> check_version(Connection& connection) {
  auto version = connection.query_int("PRAGMA user_version");
  if (!version) return tl::unexpected(std::move(version.error()));
  auto id = connection.query_int("PRAGMA application_id");
  if (!id) return tl::unexpected(std::move(id.error()));
  if (*id != application_id) {
    return fail(ErrorCode::invalid_argument, "this is an SQLite database, but no journal of neap",
                connection.path());
  }
  if (*version > schema_version) {
    return fail(ErrorCode::conflict,
                "the journal has schema version " + std::to_string(*version) +
                    ", and this neap knows versions up to " + std::to_string(schema_version) +
                    ": start the newer neap that wrote it; nothing was changed",
                connection.path());
  }
  if (*version >= 1 && *version <= 3) {
    return fail(
        ErrorCode::conflict,
        "the journal has schema version " + std::to_string(*version) +
            ", whose records this neap does not read: let the "
            "neap that wrote it finish its tasks, or begin with a new state folder; nothing "
            "was changed",
        connection.path());
  }
  if (*version < 1) {
    return fail(ErrorCode::internal,
                "the journal has schema version " + std::to_string(*version) +
                    ", which no neap has written",
                connection.path());
  }
  return {};
}

Result<void> create_private_file(const std::string& path) {
  // SQLite would create it by the umask; its -wal and -shm files take the mode of this one.
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) {
    return fail(ErrorCode::unavailable,
                std::string("cannot open the journal: ") + std::strerror(errno), path);
  }
  const bool is_private = ::fchmod(file, 0600) == 0;
  const int error = errno;
  ::close(file);
  if (is_private) return {};
  return fail(ErrorCode::permission_denied,
              std::string("cannot set mode 0600 on the journal: ") + std::strerror(error), path);
}

}  // namespace

Result<Connection> open_for_writing(const std::string& path) {
  if (auto created = create_private_file(path); !created) {
    return tl::unexpected(std::move(created.error()));
  }
  auto connection = Connection::open(path, Access::read_write, probed_vfs());
  if (!connection) return connection;
  auto tables = connection->query_int("SELECT count(*) FROM sqlite_schema");
  if (!tables) return tl::unexpected(std::move(tables.error()));
  if (*tables > 0) {
    // Before anything that writes: a newer journal must stay as it is.
    if (auto known = check_version(*connection); !known) {
      return tl::unexpected(std::move(known.error()));
    }
  }
  // A checkpoint every 16 MiB: each costs two fsyncs. cell_size_check finds torn pages early.
  auto configured = connection->execute(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON;"
      "PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 67108864;"
      "PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;");
  if (configured && *tables == 0) configured = connection->execute(create_tables);
  if (!configured) return tl::unexpected(std::move(configured.error()));
  return connection;
}

Result<Connection> open_for_reading(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) {
    return fail(ErrorCode::not_found, "there is no journal", path);
  }
  auto connection = Connection::open(path, Access::read_only);
  if (!connection) return connection;
  if (auto known = check_version(*connection); !known) {
    return tl::unexpected(std::move(known.error()));
  }
  if (auto set = connection->execute("PRAGMA cell_size_check = ON"); !set) {
    return tl::unexpected(std::move(set.error()));
  }
  return connection;
}

Result<Head> read_head(Connection& connection) {
  auto query =
      connection.prepare("SELECT sequence, time_us, chain, genesis FROM head WHERE id = 1");
  if (!query) return tl::unexpected(std::move(query.error()));
  auto row = query->step();
  if (!row) return tl::unexpected(std::move(row.error()));
  Head head;
  if (!*row || !assign(head.chain, query->column_blob(2)) ||
      !assign(head.genesis, query->column_blob(3))) {
    return fail(ErrorCode::internal, "the journal is damaged: its head row is missing or malformed",
                connection.path());
  }
  head.sequence = static_cast<std::uint64_t>(query->column_int(0));
  head.time = Time(query->column_int(1));
  return head;
}

tl::unexpected<Error> damaged(const Connection& connection, std::uint64_t sequence,
                              const std::string& what) {
  return fail(ErrorCode::internal,
              "the journal is damaged at record " + std::to_string(sequence) + ": " + what,
              connection.path());
}

Result<ChainHash> chain_after(Connection& connection, std::uint64_t sequence) {
  auto query = connection.prepare(
      "SELECT chain FROM record WHERE sequence = ?1 UNION ALL "
      "SELECT chain_last FROM segment WHERE last = ?1 UNION ALL "
      "SELECT genesis FROM head WHERE ?1 = 0");
  if (!query) return tl::unexpected(std::move(query.error()));
  query->bind(1, static_cast<std::int64_t>(sequence));
  auto row = query->step();
  if (!row) return damaged(connection, sequence, row.error().message);
  if (!*row) return damaged(connection, sequence, "the record is missing");
  ChainHash hash;
  if (!assign(hash, query->column_blob(0))) {
    return damaged(connection, sequence, "its chain hash is malformed");
  }
  return hash;
}

Result<std::uint64_t> dropped_up_to(Connection& connection) {
  auto last = connection.query_int("SELECT max(last) FROM segment WHERE raw = 0");
  if (!last) return tl::unexpected(std::move(last.error()));
  return static_cast<std::uint64_t>(*last);
}

}  // namespace neap::journal
