
// A vertex processes a block. Transform feedback records the result.
layout(location = 0) in uvec4 block;
flat out uvec4 result;

void main() {
    result = cipher(block);
    gl_Position = vec4(0.0);
}
