"""The configuration file of OpenSSL that prefers our provider, for tests and benchmarks."""


def text(module="lockstep.so", **settings):
    """The lines of interfaces/provider/lockstep.cnf without its comments, with settings such as `threads=1`."""
    lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
    return f"""
openssl_conf = openssl_init
[openssl_init]
providers = provider_sect
alg_section = algorithm_sect
[algorithm_sect]
default_properties = ?provider=lockstep
[provider_sect]
default = default_sect
lockstep = lockstep_sect
[default_sect]
activate = 1
[lockstep_sect]
module = {module}
{lines}activate = 1
"""
