// Lets the C library keep the memory that a run gives back. Every run of a sweep takes the same few megabytes again;
// fetching them from the system anew, page by page, took a tenth of a run's time.
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>

namespace {

/// Arrays up to 32 MiB come from memory that is kept, of which up to 256 MiB may be free.
[[maybe_unused]] const bool kKept =
    mallopt(M_MMAP_THRESHOLD, 32 << 20) != 0 && mallopt(M_TRIM_THRESHOLD, 256 << 20) != 0;

}  // namespace
#endif
