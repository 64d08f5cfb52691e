use super::*;

/// The integer types, operators, functions and literals in the text of a shader. A GeForce 6800 supports none of them.
fn integers(shader: &str) -> Vec<String> {
    let code: String =
        shader.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n").collect();
    let names = ["int", "uint", "bool", "texelFetch", "textureSize"];
    let prefixes = ["ivec", "uvec", "bvec", "isampler", "usampler", "floatBits", "intBits", "uintBits"];
    let is_integer = |word: &&str| {
        names.contains(word)
            || prefixes.iter().any(|prefix| word.starts_with(prefix))
            || (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
    let mut found: Vec<String> = words.filter(is_integer).map(str::to_owned).collect();
    let operators = ["&", "|", "^", "~", ">>", "<<", "%"];
    found.extend(operators.into_iter().filter(|operator| code.contains(operator)).map(str::to_owned));
    found
}

#[test]
fn shaders_have_no_integers() {
    for variant in [Variant::Tables, Variant::Mix2, Variant::Xor2] {
        let shader = Program { variant, size: KeySize::Aes256 }.fragment_shader();
        // The locations of the results are integer literals, but the shader does not compute with them.
        let shader = shader.replace("layout(location = ", "");
        assert_eq!(integers(&shader), ["0", "1", "2", "3"], "{variant:?}");
    }
    assert_eq!(integers("float a = 1; // 2\nivec2 b; c = d ^ e;"), ["1", "ivec2", "^"]);
}

/// Computes XOR by the formula of the shader of `xor2`.
fn xor(mut a: f32, mut b: f32) -> f32 {
    let (mut differing, mut weight) = (0.0, 1.0);
    while weight < 256.0 {
        let (half_a, half_b) = ((a * 0.5).floor(), (b * 0.5).floor());
        differing += weight * ((a - 2.0 * half_a) - (b - 2.0 * half_b)).abs();
        (a, b) = (half_a, half_b);
        weight *= 2.0;
    }
    differing
}

/// Computes the product of a byte and x by the formula of the shader of `mix2`.
fn xtime(byte: f32) -> f32 {
    let bit = |byte: f32, weight: f32| (byte / weight).floor() % 2.0;
    let top = bit(byte, 128.0);
    let twice = 2.0 * byte - 256.0 * top;
    let inverted = 1.0
        + 2.0 * (1.0 - 2.0 * bit(twice, 2.0))
        + 8.0 * (1.0 - 2.0 * bit(twice, 8.0))
        + 16.0 * (1.0 - 2.0 * bit(twice, 16.0));
    twice + top * inverted
}

#[test]
fn arithmetic_equals_the_tables() {
    for a in 0..=255u8 {
        assert_eq!(xtime(a.into()), doubled(a).into());
        for b in 0..=255u8 {
            assert_eq!(xor(a.into(), b.into()), (a ^ b).into());
        }
    }
}

#[test]
fn columns_are_joined_again() {
    let blocks: Vec<u8> = (0..64).collect();
    let columns = columns(&blocks);
    assert_eq!(columns[1][..8], [4, 5, 6, 7, 20, 21, 22, 23]);
    let mut joined = vec![0; 64];
    join(&columns, &mut joined);
    assert_eq!(joined, blocks);
}
