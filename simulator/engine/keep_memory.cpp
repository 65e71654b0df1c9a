// A setting of the C library: it keeps the memory that a run frees. Every run of a sweep takes the same few megabytes
// again; without this, getting them from the system page by page took a tenth of a run's time.
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>

namespace {

/// Arrays of less than 32 MiB come from the C library's heap. Free memory at the heap's end goes back to the system
/// only if it is more than 256 MiB.
[[maybe_unused]] const bool kKept =
    mallopt(M_MMAP_THRESHOLD, 32 << 20) != 0 && mallopt(M_TRIM_THRESHOLD, 256 << 20) != 0;

}  // namespace
#endif
