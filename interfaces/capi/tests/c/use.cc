// Uses the header in C++. The objects of the library are in std::unique_ptr, and the buffers are containers.
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <lockstep.h>

static void check(int code)
{
    if (code != LOCKSTEP_OK)
        throw std::runtime_error(lockstep_last_error_message());
}

template <typename T, void (*Free)(T *)>
struct Freed {
    void operator()(T *object) const { Free(object); }
};
using Engine = std::unique_ptr<lockstep_engine, Freed<lockstep_engine, lockstep_engine_free>>;
using FileKey = std::unique_ptr<lockstep_file_key, Freed<lockstep_file_key, lockstep_file_key_free>>;

int main()
{
    lockstep_engine *engine_pointer = nullptr;
    check(lockstep_engine_new(nullptr, &engine_pointer));
    const Engine engine(engine_pointer);
    lockstep_file_key *key_pointer = nullptr;
    check(lockstep_file_key_generate(256, &key_pointer));
    const FileKey key(key_pointer);

    const std::vector<std::uint8_t> plain(100000, 42);
    std::uint64_t needed = 0;
    check(lockstep_sealed_len(plain.size(), &needed));
    std::vector<std::uint8_t> sealed(needed), opened(plain.size());
    std::size_t len = 0;
    check(lockstep_seal(engine.get(), key.get(), nullptr, 0, plain.data(), plain.size(), sealed.data(), sealed.size(), &len));
    check(lockstep_open(engine.get(), key.get(), nullptr, 0, sealed.data(), len, opened.data(), opened.size(), &len));
    if (opened != plain)
        return 1;
    try {
        sealed[0] ^= 1;
        check(lockstep_open(engine.get(), key.get(), nullptr, 0, sealed.data(), sealed.size(), opened.data(), opened.size(), &len));
    } catch (const std::runtime_error &error) {
        return std::string(error.what()).find("wrong key") == std::string::npos;
    }
    return 1;
}
