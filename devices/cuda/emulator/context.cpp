#include "context.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace emulator {

void *new_stack() {
    void *stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) return nullptr;
    if (mprotect(stack, static_cast<size_t>(sysconf(_SC_PAGESIZE)), PROT_NONE) != 0) {
        munmap(stack, STACK_BYTES);
        return nullptr;
    }
    return stack;
}

void free_stack(void *stack) { munmap(stack, STACK_BYTES); }

namespace {

// The address where the stack of a fiber begins, 16-aligned. Hundreds of stacks that begin at the same offset in a page
// would share a few sets of the cache. So the offset depends on the number of the page.
[[maybe_unused]] uint64_t *top_of(void *stack) {
    size_t page = reinterpret_cast<uintptr_t>(stack) >> 12;
    return reinterpret_cast<uint64_t *>(static_cast<char *>(stack) + STACK_BYTES - 64 - page % 16 * 256);
}

}  // namespace
}  // namespace emulator

#if defined(__x86_64__) && defined(__ELF__) && !defined(LOCKSTEP_EMULATOR_UCONTEXT)

// The registers that a function must preserve are saved on the stack, and the context is the stack pointer. The control
// words of the floating-point units are not saved, because kernels do not change them.
asm(R"(
    .text
    .p2align 4
    .local lockstep_emu_switch
    .type lockstep_emu_switch, @function
lockstep_emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    retq
    .size lockstep_emu_switch, . - lockstep_emu_switch
)");
extern "C" void lockstep_emu_switch(void **from, void *to);

namespace emulator {

void *new_context(void *stack, void (*entry)()) {
    // Six registers, the address that the switch returns to, and a return address for `entry`, which has none. At the entry
    // of a function, the stack pointer is a multiple of 16 plus 8.
    uint64_t *top = top_of(stack) - 8;
    memset(top, 0, 8 * sizeof *top);
    top[6] = reinterpret_cast<uint64_t>(entry);
    return top;
}

void switch_context(void **from, void *to) { lockstep_emu_switch(from, to); }

}  // namespace emulator

#elif defined(__aarch64__) && defined(__ELF__) && !defined(LOCKSTEP_EMULATOR_UCONTEXT)

asm(R"(
    .text
    .p2align 4
    .local lockstep_emu_switch
    .type lockstep_emu_switch, %function
lockstep_emu_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size lockstep_emu_switch, . - lockstep_emu_switch
)");
extern "C" void lockstep_emu_switch(void **from, void *to);

namespace emulator {

void *new_context(void *stack, void (*entry)()) {
    // Twenty registers of 8 bytes, as the switch saves them; x30 has the return address.
    uint64_t *top = top_of(stack) - 20;
    memset(top, 0, 20 * sizeof *top);
    top[11] = reinterpret_cast<uint64_t>(entry);
    return top;
}

void switch_context(void **from, void *to) { lockstep_emu_switch(from, to); }

}  // namespace emulator

#else

#include <ucontext.h>

namespace emulator {

// For other processors and systems. This variant is slower, because each switch also sets the signal mask. The ucontext of a
// fiber is at the lower end of its stack, above the guard page. The ucontext of the scheduler is in the stack frame of the
// function that switches away from it.
void *new_context(void *stack, void (*entry)()) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    ucontext_t *context = reinterpret_cast<ucontext_t *>(static_cast<char *>(stack) + page);
    getcontext(context);
    context->uc_link = nullptr;
    context->uc_stack.ss_sp = static_cast<char *>(stack) + 2 * page;
    context->uc_stack.ss_size = STACK_BYTES - 2 * page;
    makecontext(context, entry, 0);
    return context;
}

void switch_context(void **from, void *to) {
    ucontext_t here;
    *from = &here;
    swapcontext(&here, static_cast<ucontext_t *>(to));
}

}  // namespace emulator

#endif
