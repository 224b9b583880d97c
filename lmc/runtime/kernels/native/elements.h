/* Element types shared by the kernels: 0 is float, 1 is bfloat16. */
#ifndef LMC_ELEMENTS_H
#define LMC_ELEMENTS_H
#include <stdint.h>
#include <string.h>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif

typedef float vector __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t ivector __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef uint32_t uvector __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef uint16_t hvector __attribute__((vector_size(LANES * 2), aligned(2), may_alias));

static inline float from_half(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, 4);
    return value;
}

/* Rounds to nearest, ties to even; NaN stays NaN. */
static inline uint16_t to_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 64u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline float get(const void *base, int64_t offset, int type) {
    return type ? from_half(((const uint16_t *)base)[offset]) : ((const float *)base)[offset];
}

static inline void put(void *base, int64_t offset, int type, float value) {
    if (type) ((uint16_t *)base)[offset] = to_half(value);
    else ((float *)base)[offset] = value;
}

static inline vector broadcast(float value) { return (vector){0} + value; }

static inline vector load(const void *base, int64_t offset, int type) {
    if (type == 0) return *(const vector *)((const float *)base + offset);
    hvector bits = *(const hvector *)((const uint16_t *)base + offset);
    return (vector)(__builtin_convertvector(bits, uvector) << 16);
}

static inline vector choose(ivector mask, vector yes, vector no) {
    return (vector)(((ivector)yes & mask) | ((ivector)no & ~mask));
}

static inline void store(void *base, int64_t offset, int type, vector value) {
    if (type == 0) {
        *(vector *)((float *)base + offset) = value;
        return;
    }
    uvector bits = (uvector)value;
    uvector rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    ivector odd = value != value;
    rounded = (uvector)(((ivector)((bits >> 16) | 64u) & odd) | ((ivector)rounded & ~odd));
    *(hvector *)((uint16_t *)base + offset) = __builtin_convertvector(rounded, hvector);
}

/* A value as it is after it was stored and loaded again. */
static inline vector rounded(vector value, int type) {
    uint16_t bits[LANES];
    if (!type) return value;
    store(bits, 0, type, value);
    return load(bits, 0, type);
}

/* Operands of products are laid out in words of 32 bits: a float, or a pair of bfloat16 that lie next to each other along the
 * dimension that is summed over. How many words hold `count` elements. */
static inline int words(int count, int type) { return type ? (count + 1) / 2 : count; }

/* sum + a x b by lane, where a word of pairs gives two products. All sums are float. */
static inline __attribute__((always_inline)) vector multiply_add(vector sum, uvector a, uvector b, int type) {
    if (type == 0) return sum + (vector)a * (vector)b;
#if defined(__AVX512BF16__)
    return (vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
    sum += (vector)(a & 0xffff0000u) * (vector)(b & 0xffff0000u);
    return sum + (vector)(a << 16) * (vector)(b << 16);
#endif
}

static inline float total(vector value) {
    float parts[LANES];
    memcpy(parts, &value, sizeof parts);
    for (int width = LANES / 2; width; width /= 2)
        for (int lane = 0; lane < width; lane++) parts[lane] += parts[lane + width];
    return parts[0];
}

/* exp for arguments <= 88; below -87 it gives 0. Relative error below 2e-7; NaN stays NaN. */
static inline vector exponential(vector x) {
    ivector tiny = x < broadcast(-87.0f), odd = x != x;
    x = choose(tiny, broadcast(-87.0f), x);
    vector scaled = x * 1.44269504f + 12582912.0f; /* adding 1.5 * 2^23 rounds to an integer */
    ivector exponent = (ivector)scaled - (ivector)broadcast(12582912.0f);
    vector whole = scaled - 12582912.0f;
    vector rest = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    vector sum = broadcast(1.9875691500e-4f);
    sum = sum * rest + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    vector result = choose(tiny, broadcast(0), (vector)((ivector)sum + (exponent << 23)));
    return choose(odd, x, result); /* the bits of a NaN would be added to the exponent */
}
#endif
