#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PATIENCE = 10000 }; /* looks at what is left, some nanoseconds each, before the caller sleeps */

static pthread_mutex_t one_run = PTHREAD_MUTEX_INITIALIZER; /* held for a whole run */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;   /* of what follows */
static pthread_cond_t begin = PTHREAD_COND_INITIALIZER, end = PTHREAD_COND_INITIALIZER;
static int started, wanted;
static atomic_int busy;
static uint64_t turn;
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

static void *serve(void *number) {
    int thread = (int)(intptr_t)number;
    uint64_t seen = 0;
    pthread_mutex_lock(&guard);
    for (;;) {
        while (turn == seen || thread >= wanted) {
            seen = turn;
            pthread_cond_wait(&begin, &guard);
        }
        seen = turn;
        pthread_mutex_unlock(&guard);
        work(thread);
        pthread_mutex_lock(&guard);
        if (atomic_fetch_sub(&busy, 1) == 1) pthread_cond_signal(&end);
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
    started = wanted = 0;
    atomic_store(&busy, 0);
    turn = 0;
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

void pool_run(pool_piece piece, void *argument, int64_t count, int threads) {
    if (threads > POOL_MOST_THREADS) threads = POOL_MOST_THREADS;
    if (threads > count) threads = (int)count;
    if (threads <= 1) {
        for (int64_t index = 0; index < count; index++) piece(argument, index, 0);
        return;
    }
    pthread_mutex_lock(&one_run);
    pthread_mutex_lock(&guard);
    current = piece;
    current_argument = argument;
    current_count = count;
    atomic_store(&next_index, 0);
    wanted = ensure(threads);
    atomic_store(&busy, wanted - 1);
    turn++;
    pthread_cond_broadcast(&begin);
    pthread_mutex_unlock(&guard);
    work(0);
    /* The last pieces are nearly done: sleeping and being woken takes longer than they do. */
    for (int turns = 0; turns < PATIENCE && atomic_load(&busy); turns++) continue;
    pthread_mutex_lock(&guard);
    while (atomic_load(&busy)) pthread_cond_wait(&end, &guard);
    wanted = 0;
    pthread_mutex_unlock(&guard);
    pthread_mutex_unlock(&one_run);
}
