# Bash splits the words of a command line at colons, as in cuda:0, and at equals signs, as in --device=cuda:0. This function
# completes the word up to the cursor as a whole, and proposes what bash replaces: what follows the last colon or equals sign, if
# COMP_WORDBREAKS has this character.
_NAME_words() {
    local line="${COMP_LINE:0:COMP_POINT}" option="" word
    word="${line##*[[:space:]]}"
    if [[ "$word" != *:* && "$word" != --*=* ]]; then
        _NAME "$@"
        return
    fi
    local -a COMP_WORDS
    read -r -a COMP_WORDS <<<"${line%"$word"}"
    if [[ "$word" == --*=* ]]; then
        COMP_WORDS+=("${word%%=*}")
        [[ "$COMP_WORDBREAKS" == *=* ]] || option="${word%%=*}="
        word="${word#*=}"
    fi
    local COMP_CWORD=${#COMP_WORDS[@]}
    COMP_WORDS+=("$word")
    _NAME "$1" "$word" "${COMP_WORDS[COMP_CWORD - 1]}"
    if [[ "$word" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%:*}:"}")
    else
        COMPREPLY=("${COMPREPLY[@]/#/$option}")
    fi
}

