#include "journal/sqlite.h"

#include <sqlite3.h>

#include "core/model/check.h"

namespace neap::journal {
namespace {

ErrorCode code_of(int primary) {
  switch (primary) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
      return ErrorCode::unavailable;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorCode::conflict;
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return ErrorCode::permission_denied;
    case SQLITE_TOOBIG:
      return ErrorCode::too_large;
    default:
      return ErrorCode::internal;
  }
}

tl::unexpected<Error> failure(sqlite3* connection, int status) {
  const int extended = connection != nullptr ? sqlite3_extended_errcode(connection) : status;
  std::string message = connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(status);
  message += " (SQLite code " + std::to_string(extended) + ")";
  const char* file = connection != nullptr ? sqlite3_db_filename(connection, "main") : nullptr;
  return fail(code_of(status & 0xff), std::move(message), file != nullptr ? file : "");
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::bind(int index, std::int64_t value) {
  NEAP_CHECK(sqlite3_bind_int64(statement_.get(), index, value) == SQLITE_OK);
}

void Statement::bind(int index, Bytes blob) {
  // A null pointer would bind NULL; an empty blob is a value.
  const void* data = blob.empty() ? static_cast<const void*>("") : blob.data();
  NEAP_CHECK(sqlite3_bind_blob64(statement_.get(), index, data, blob.size(), SQLITE_STATIC) ==
             SQLITE_OK);
}

void Statement::bind_text(int index, std::string_view text) {
  const char* data = text.empty() ? "" : text.data();
  NEAP_CHECK(sqlite3_bind_text64(statement_.get(), index, data, text.size(), SQLITE_STATIC,
                                 SQLITE_UTF8) == SQLITE_OK);
}

Result<bool> Statement::step() {
  const int status = sqlite3_step(statement_.get());
  if (status == SQLITE_ROW) return true;
  if (status == SQLITE_DONE) {
    sqlite3_reset(statement_.get());
    return false;
  }
  auto error = failure(sqlite3_db_handle(statement_.get()), status);
  sqlite3_reset(statement_.get());
  return error;
}

Result<void> Statement::run() {
  auto row = step();
  if (!row) return tl::unexpected(std::move(row.error()));
  NEAP_CHECK(!*row);
  return {};
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

std::int64_t Statement::column_int(int index) const {
  return sqlite3_column_int64(statement_.get(), index);
}

Bytes Statement::column_blob(int index) const {
  const void* data = sqlite3_column_blob(statement_.get(), index);
  const int size = sqlite3_column_bytes(statement_.get(), index);
  return {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)};
}

std::string Statement::column_text(int index) const {
  const Bytes bytes = column_blob(index);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool Statement::column_is_null(int index) const {
  return sqlite3_column_type(statement_.get(), index) == SQLITE_NULL;
}

void Connection::Close::operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }

Result<Connection> Connection::open(const std::string& path, Access access,
                                    const std::string& vfs) {
  sqlite3* raw = nullptr;
  // NOMUTEX: each connection belongs to one thread at a time.
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (access == Access::read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
  const int status =
      sqlite3_open_v2(path.c_str(), &raw, flags, vfs.empty() ? nullptr : vfs.c_str());
  Connection connection(raw, path);
  if (status != SQLITE_OK) {
    auto error = failure(raw, status);
    error.value().message = "cannot open: " + error.value().message;
    error.value().context = path;
    return error;
  }
  sqlite3_busy_timeout(raw, 5'000);
  return connection;
}

Result<void> Connection::execute(const char* sql) {
  const int status = sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr);
  if (status != SQLITE_OK) return failure(connection_.get(), status);
  return {};
}

Result<Statement> Connection::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int status = sqlite3_prepare_v3(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (status != SQLITE_OK) return failure(connection_.get(), status);
  return Statement(statement);
}

Result<std::int64_t> Connection::query_int(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return tl::unexpected(std::move(statement.error()));
  auto row = statement->step();
  if (!row) return tl::unexpected(std::move(row.error()));
  return *row ? statement->column_int(0) : 0;
}

std::int64_t Connection::changes() const { return sqlite3_changes64(connection_.get()); }

}  // namespace neap::journal
