// The kernels that are linked in, and calls of kernels with the bytes of CUDA's parameter buffer.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <utility>

namespace emulator {

// A kernel, in a list that static constructors make before main.
struct Kernel {
    const char *name;
    uint32_t max_threads;
    void (*function)();
    void (*call)(void (*function)(), const unsigned char *params);
    size_t params_len;
    const Kernel *next;
    mutable uint64_t launches = 0;

    template <class... P>
    Kernel(const char *name, void (*kernel)(P...), uint32_t max_threads);
};

// A number that kernels and src/kernel.rs must agree on.
struct Constant {
    const char *name;
    uint64_t value;
    const Constant *next;

    Constant(const char *name, uint64_t value);
};

extern const Kernel *kernels;
extern const Constant *constants;

// Offsets in the parameter buffer. Each parameter is at its natural alignment.
template <class... P>
struct Parameters {
    size_t offset[sizeof...(P) + 1] = {};
    constexpr Parameters() {
        constexpr size_t sizes[] = {sizeof(P)..., 0}, aligns[] = {alignof(P)..., 1};
        size_t at = 0;
        for (size_t i = 0; i < sizeof...(P); i++) {
            at = (at + aligns[i] - 1) / aligns[i] * aligns[i];
            offset[i] = at;
            at += sizes[i];
        }
        offset[sizeof...(P)] = at;
    }
};

template <class P>
P parameter(const unsigned char *from) {
    P value;
    memcpy(&value, from, sizeof value);
    return value;
}

template <class... P, size_t... I>
void call_with(void (*kernel)(P...), const unsigned char *params, std::index_sequence<I...>) {
    constexpr Parameters<P...> layout;
    kernel(parameter<P>(params + layout.offset[I])...);
}

template <class... P>
void call(void (*function)(), const unsigned char *params) {
    call_with<P...>(reinterpret_cast<void (*)(P...)>(function), params, std::index_sequence_for<P...>{});
}

template <class... P>
Kernel::Kernel(const char *name, void (*kernel)(P...), uint32_t max_threads)
    : name(name),
      max_threads(max_threads),
      function(reinterpret_cast<void (*)()>(kernel)),
      call(emulator::call<P...>),
      params_len(Parameters<P...>().offset[sizeof...(P)]),
      next(kernels) {
    kernels = this;
}

}  // namespace emulator

// There are two macros, so that a name that another macro makes is expanded first.
#define EMULATOR_KERNEL(name, threads, params) EMULATOR_KERNEL_(name, threads, params)
#define EMULATOR_KERNEL_(name, threads, params)                        \
    static void name params;                                           \
    static const ::emulator::Kernel name##_entry(#name, name, threads); \
    static void name params
#define EMULATOR_EXPORT(name, value) EMULATOR_EXPORT_(name, value)
#define EMULATOR_EXPORT_(name, value) static const ::emulator::Constant name##_export(#name, value)
