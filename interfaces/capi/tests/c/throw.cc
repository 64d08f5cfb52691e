// A callback throws an exception, which is not permitted. The program ends, and the call of the library does not return.
#include <cstdio>
#include <stdexcept>

#include <lockstep.h>

static std::ptrdiff_t throws(void *, std::uint8_t *, std::size_t)
{
    throw std::runtime_error("an exception of a callback");
}

static std::ptrdiff_t discard(void *, const std::uint8_t *, std::size_t len)
{
    return static_cast<std::ptrdiff_t>(len);
}

int main()
{
    lockstep_engine *engine = nullptr;
    lockstep_file_key *key = nullptr;
    if (lockstep_engine_new(nullptr, &engine) != LOCKSTEP_OK || lockstep_file_key_generate(256, &key) != LOCKSTEP_OK)
        return 1;
    std::puts("called");
    std::fflush(stdout);
    try {
        lockstep_encrypt_stream(engine, key, nullptr, 0, throws, nullptr, discard, nullptr, nullptr, nullptr);
    } catch (const std::exception &) {
    }
    return 0;
}
