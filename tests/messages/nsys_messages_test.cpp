// Messages of the importer of Nsight Systems exports, word for word.
#include <string>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "tests/nsys_report.hpp"

namespace tidepool::nsys_messages_test {

using tests::complaint;
using tests::database;
using tests::NsysWriter;

namespace {

std::string said(std::string_view bytes) { return complaint(read_nsys, bytes); }

/// The message about a report of one kernel that a statement in SQL has changed; "" if the report is read.
std::string changed(const std::string& sql) {
  NsysWriter report;
  report.kernel("k", 10, 20, 30);
  report.memory_table();
  report.sql(sql);
  return said(report.file());
}

constexpr std::size_t kPage = 512;

/// An inner page of a table with 81 children, all of them the page with the number `child`: its 80 entries name one
/// cell, and its last child is the child of that cell, too.
std::string inner_page(char child) {
  constexpr std::size_t kCells = 80, kCell = kPage - 5;
  std::string page(kPage, '\0');
  page[0] = 5;
  page[4] = static_cast<char>(kCells);
  page[5] = static_cast<char>(kCell >> 8), page[6] = static_cast<char>(kCell & 0xff);
  page[11] = child;
  for (std::size_t i = 0; i < kCells; ++i)
    page[12 + 2 * i] = static_cast<char>(kCell >> 8), page[13 + 2 * i] = static_cast<char>(kCell & 0xff);
  page[kCell + 3] = child;
  page[kCell + 4] = 1;
  return page;
}

}  // namespace

TEST_CASE("messages about files that are no nsys report") {
  CHECK(said("") == "t.log: not an SQLite database");
  CHECK(said("QDSTRM") == "t.log: not an SQLite database");
  CHECK(said(std::string{"SQLite format 3\0", 16} + std::string(600, 'x')) == "t.log: file is not a database");
  CHECK(said(database("CREATE TABLE runs(run_key TEXT)")) ==
        "t.log: no table CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET, "
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE or CUDA_GPU_MEMORY_USAGE_EVENTS; expected the export of an Nsight Systems "
        "report of CUDA activity (nsys profile --trace=cuda, then nsys export --type=sqlite)");
  CHECK(changed("DROP TABLE StringIds;") == "t.log: no table StringIds, which has the names of the kernels");
}

TEST_CASE("messages about tables of an nsys report that lack a column") {
  CHECK(changed("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN streamId TO stream;") ==
        "t.log: CUPTI_ACTIVITY_KIND_KERNEL: no column 'streamId'; expected start, end, deviceId, streamId, "
        "demangledName");
  CHECK(changed("ALTER TABLE CUDA_GPU_MEMORY_USAGE_EVENTS DROP COLUMN address;") ==
        "t.log: CUDA_GPU_MEMORY_USAGE_EVENTS: no column 'address'; expected start, deviceId, address, bytes, memKind, "
        "memoryOperationType");
  CHECK(changed("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN correlationId;").empty());  // optional
}

TEST_CASE("messages about rows of an nsys report") {
  const std::string kernel = "t.log: CUPTI_ACTIVITY_KIND_KERNEL: row 1: ";
  const auto set = [](const std::string& what) { return changed("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET " + what); };
  CHECK(set("end = 19") == kernel + "ends at 19, before it starts at 20");
  CHECK(set("start = 'soon'") ==
        kernel + "\"start\" is 'soon'; expected a whole number, -1152921504606846976 to 1152921504606846976");
  CHECK(set("end = 1152921504606846977") ==
        kernel +
            "\"end\" is '1152921504606846977'; expected a whole number, -1152921504606846976 to 1152921504606846976");
  CHECK(set("deviceId = -1") == kernel + "\"deviceId\" is '-1'; expected a whole number, 0 to 65535");
  CHECK(set("deviceId = NULL") == kernel + "\"deviceId\" is null; expected a whole number, 0 to 65535");
  CHECK(set("demangledName = 99") == kernel + "\"demangledName\" is 99, which StringIds does not have");

  const std::string memory = "t.log: CUDA_GPU_MEMORY_USAGE_EVENTS: row 1: ";
  const auto event = [](const std::string& values) {
    return changed("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES(" + values + ",NULL,NULL)");
  };
  CHECK(event("1,0,0,1,4096,-8,2,0") ==
        memory + "\"bytes\" is '-8'; expected a whole number, 0 to 4611686018427387904");
  CHECK(event("1,0,0,1,4096,8,2,2") == memory + "\"memoryOperationType\" is '2'; expected a whole number, 0 to 1");
  CHECK(event("1,0,0,1,4096,4611686018427387904,2,0") == memory + "the sizes add up to more than 2305843009213693952");
  CHECK(changed("INSERT INTO NVTX_EVENTS VALUES(9,8,59,'x',NULL)") ==
        "t.log: NVTX_EVENTS: row 1: ends at 8, before it starts at 9");
}

TEST_CASE("messages about the devices of an nsys report") {
  NsysWriter report;
  const auto device = [&](std::size_t number) {
    return complaint([&](const Input& input) { read_nsys_device(input, number); }, report.file());
  };
  CHECK(device(0) == "t.log: no device 0; the report has no record of any");
  report.kernel("k", 10, 20, 30, 7, 1);
  report.kernel("k", 10, 20, 30, 7, 4);
  CHECK(device(3) == "t.log: no device 3; the report has 1, 4");
  CHECK(device(4).empty());
}

TEST_CASE("an nsys report of more streams than any program has is refused") {
  const auto with_streams = [](int count) {
    return said(
        database("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start, end, deviceId, streamId);"
                 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
                 std::to_string(count) + ") INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET SELECT i, i, 0, i FROM n"));
  };
  CHECK(with_streams(4096).empty());
  CHECK(with_streams(4097) == "t.log: more than 4096 streams");
}

TEST_CASE("views of an nsys report are not read") {
  CHECK(said(database("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start, end, deviceId, streamId);"
                      "CREATE TABLE StringIds(id, value);"
                      "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + "
                      "1 FROM n) SELECT i AS start, i AS end, 0 AS deviceId, 0 AS streamId, 1 AS demangledName FROM n"))
            .empty());
}

TEST_CASE("columns of an nsys report that are computed to be large are refused") {
  CHECK(said(database("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start, end, deviceId, streamId, copyKind AS "
                      "(length(replace(hex(zeroblob(3000000)), '0', 'ab'))));"
                      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(0, 1, 0, 0)")) ==
        "t.log: CUPTI_ACTIVITY_KIND_MEMCPY: string or blob too big");
}

TEST_CASE("an nsys report whose pages share their children is refused before its half a million rows are read") {
  std::string file = database(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start, end, deviceId, streamId);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES(0, 1, 0, 7)");
  REQUIRE(file.size() == 2 * kPage);
  file += file.substr(kPage);                 // page 3: the row
  file += inner_page(3);                      // page 4: page 3, 81 times
  file += inner_page(4);                      // page 5
  file.replace(kPage, kPage, inner_page(5));  // the root, page 2: 81^3 rows
  file[31] = 5;                               // the number of pages
  CHECK(said(file) == "t.log: CUPTI_ACTIVITY_KIND_MEMSET: takes more work to read than a sound file of 2.5 KiB can");
}

TEST_CASE("an nsys report whose rows share a long text is refused before it is copied many times") {
  std::string file = database(
      "CREATE TABLE StringIds(id, value);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start, end, deviceId, streamId);"
      "INSERT INTO StringIds VALUES(1, '" +
      std::string(20'000, 'x') + "')");
  const std::string work = "takes more work to read than a sound file of ";
  CHECK_THAT(said(file), !ContainsSubstring(work));
  const std::size_t pages = file.size() / kPage;
  REQUIRE(pages < 100);
  file += file.substr(kPage, kPage);                                     // a new last page: the row
  file.replace(kPage, kPage, inner_page(static_cast<char>(pages + 1)));  // the root: the row, 81 times
  file[31] = static_cast<char>(pages + 1);
  CHECK(said(file) == "t.log: StringIds: " + work + "21.5 KiB can");
}

TEST_CASE("an nsys report that is truncated or overwritten anywhere is read or refused, without a crash") {
  NsysWriter report;
  report.memory_table();
  report.kernel("k", 10, 20, 30);
  report.memory(false, 5, 4096, 64);
  report.range("Forward", 5, "25");
  const std::string whole = report.file();
  std::size_t refused = 0;
  for (std::size_t size = 0; size < whole.size(); size += 101) refused += !said(whole.substr(0, size)).empty();
  CHECK(refused > whole.size() / 101 / 2);
  for (std::size_t at = 16; at < whole.size(); at += 37) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    CHECK_NOTHROW(said(damaged));
  }
}

}  // namespace tidepool::nsys_messages_test
