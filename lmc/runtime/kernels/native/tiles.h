/* Products of bfloat16 tiles in hardware (x86 AMX); HAVE_TILES where the compiler targets it. */
#ifndef LMC_TILES_H
#define LMC_TILES_H
#if defined(__AMX_BF16__) && defined(__linux__)
#define HAVE_TILES
#include <immintrin.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The intrinsics of some compilers do not say that they read memory: what was stored before must be there. */
#define TILES_READ_MEMORY() __asm__ volatile("" ::: "memory")

/* Linux gives a process the tiles' registers when it asks. */
static inline int ask_for_tiles(void) {
    enum { ASK = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
}

/* Rows and bytes of a row of each of the eight tiles; forgets what they hold. */
static inline void shape_tiles(const int *rows, const int *bytes) {
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } __attribute__((aligned(64))) shape = {.palette = 1};
    for (int tile = 0; tile < 8; tile++) {
        shape.rows[tile] = (uint8_t)rows[tile];
        shape.bytes[tile] = (uint16_t)bytes[tile];
    }
    TILES_READ_MEMORY();
    _tile_loadconfig(&shape);
}

#define load_tile(tile, from, stride) \
    do { \
        TILES_READ_MEMORY(); \
        _tile_loadd(tile, from, stride); \
    } while (0)
#define store_tile(tile, to, stride) \
    do { \
        _tile_stored(tile, to, stride); \
        TILES_READ_MEMORY(); \
    } while (0)
#define multiply_tiles(sum, left, right) _tile_dpbf16ps(sum, left, right) /* sum += left x right, by pairs */
#define release_tiles() _tile_release()
#endif
#endif
