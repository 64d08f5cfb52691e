
// A fragment processes a block.
uniform highp usampler2D blocks;
layout(location = 0) out uvec4 result;

void main() {
    result = cipher(texelFetch(blocks, ivec2(gl_FragCoord.xy), 0));
}
