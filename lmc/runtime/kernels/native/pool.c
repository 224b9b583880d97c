#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>

#if defined(__x86_64__) || defined(__i386__)
#define RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define RELAX() __asm__ volatile("yield")
#else
#define RELAX() (void)0
#endif

enum {
    PATIENCE = 3000, /* looks, some ten nanoseconds each, before a thread sleeps: less than being woken would cost */
    THREAD_BITS = 16
};

/* A ticket is the number of a run, and below it how many threads may work on it: none once it is closed. A helper that comes late
 * finds it closed and is not waited for, so another process on its core delays nobody. */
static pthread_mutex_t one_run = PTHREAD_MUTEX_INITIALIZER; /* held for a whole run */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;   /* of going to sleep and being woken */
static pthread_cond_t begin = PTHREAD_COND_INITIALIZER, end = PTHREAD_COND_INITIALIZER;
static int started;
static atomic_llong ticket;
static atomic_int inside;   /* helpers that may look at what follows */
static atomic_int sleepers; /* helpers that wait for `begin` */
static atomic_int caller_sleeps;
static pool_piece current;
static void *current_argument;
static int64_t current_count;
static atomic_llong next_index;

static void work(int thread) {
    for (;;) {
        int64_t index = atomic_fetch_add(&next_index, 1);
        if (index >= current_count) return;
        current(current_argument, index, thread);
    }
}

static int threads_of(long long run) { return (int)(run & ((1 << THREAD_BITS) - 1)); }

/* The next ticket after `seen`. */
static long long next_ticket(long long seen) {
    for (int looks = 0; looks < PATIENCE; looks++) {
        long long found = atomic_load(&ticket);
        if (found != seen) return found;
        RELAX();
    }
    pthread_mutex_lock(&guard);
    atomic_fetch_add(&sleepers, 1);
    while (atomic_load(&ticket) == seen) pthread_cond_wait(&begin, &guard);
    atomic_fetch_sub(&sleepers, 1);
    pthread_mutex_unlock(&guard);
    return atomic_load(&ticket);
}

static void leave(void) {
    if (atomic_fetch_sub(&inside, 1) != 1 || !atomic_load(&caller_sleeps)) return;
    pthread_mutex_lock(&guard);
    pthread_cond_signal(&end);
    pthread_mutex_unlock(&guard);
}

static void *serve(void *number) {
    int thread = (int)(intptr_t)number;
    long long seen = 0;
    for (;;) {
        seen = next_ticket(seen);
        if (thread >= threads_of(seen)) continue;
        atomic_fetch_add(&inside, 1);
        if (atomic_load(&ticket) == seen) work(thread); /* still open: the caller waits until nobody is inside */
        leave();
    }
    return 0;
}

/* Only the thread that forks lives on in the child, and it is in no run: what it inherits of one under way, and of helpers
 * that wait, is put back to the start. */
static void start_anew(void) {
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t without_waiters = PTHREAD_COND_INITIALIZER;
    one_run = guard = unlocked;
    begin = end = without_waiters;
    started = 0;
    atomic_store(&ticket, 0);
    atomic_store(&inside, 0);
    atomic_store(&sleepers, 0);
    atomic_store(&caller_sleeps, 0);
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(0, 0, start_anew); }

/* Start helpers up to `threads - 1`; fewer where the system refuses. Returns how many threads there are. */
static int ensure(int threads) {
    while (started < threads - 1) {
        pthread_t made;
        if (pthread_create(&made, 0, serve, (void *)(intptr_t)(started + 1))) break;
        pthread_detach(made);
        started++;
    }
    return started + 1 < threads ? started + 1 : threads;
}

static void wait_for_helpers(void) {
    for (int looks = 0; looks < PATIENCE; looks++) {
        if (!atomic_load(&inside)) return;
        RELAX();
    }
    pthread_mutex_lock(&guard);
    atomic_store(&caller_sleeps, 1);
    while (atomic_load(&inside)) pthread_cond_wait(&end, &guard);
    atomic_store(&caller_sleeps, 0);
    pthread_mutex_unlock(&guard);
}

void pool_run(pool_piece piece, void *argument, int64_t count, int threads) {
    if (threads > POOL_MOST_THREADS) threads = POOL_MOST_THREADS;
    if (threads > count) threads = (int)count;
    if (threads <= 1) {
        for (int64_t index = 0; index < count; index++) piece(argument, index, 0);
        return;
    }
    pthread_mutex_lock(&one_run);
    current = piece;
    current_argument = argument;
    current_count = count;
    atomic_store(&next_index, 0);
    long long run = (atomic_load(&ticket) >> THREAD_BITS) + 1;
    atomic_store(&ticket, run << THREAD_BITS | ensure(threads));
    if (atomic_load(&sleepers)) {
        pthread_mutex_lock(&guard);
        pthread_cond_broadcast(&begin);
        pthread_mutex_unlock(&guard);
    }
    work(0);
    atomic_store(&ticket, run << THREAD_BITS);
    wait_for_helpers();
    pthread_mutex_unlock(&one_run);
}
