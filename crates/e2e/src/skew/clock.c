/* A wall clock that a test can set, for one process: what clock_gettime says of CLOCK_REALTIME, moved
 * by the seconds that the file named by E2E_CLOCK holds. All other clocks are as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int (*real)(clockid_t, struct timespec *);
static const volatile int64_t *moved;

__attribute__((constructor)) static void open_clock(void) {
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("E2E_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *page = mmap(NULL, sizeof *moved, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED)
        moved = page;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int said = real(clock, now);
    if (said == 0 && moved && clock == CLOCK_REALTIME)
        now->tv_sec += *moved;
    return said;
}
