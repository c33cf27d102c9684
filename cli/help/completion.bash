# Completion of everywire for bash: the program answers, and asks whoever is named so far.
_everywire() {
    local rest=${COMP_LINE:0:COMP_POINT} words=() word bare i
    # Bash takes colons and equals signs for ends of words, and addresses have both: what no blank parts is one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        bare=${rest#"${rest%%[![:space:]]*}"}
        if ((i == COMP_CWORD)); then word=$bare; fi
        if ((i > 0)) && [[ $bare == "$rest" && -n $rest ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        rest=${bare#"$word"}
    done
    local last=${words[${#words[@]}-1]}
    local IFS=$'\013'
    COMPREPLY=($(
        EVERYWIRE_COMPLETE=bash _CLAP_IFS="$IFS" _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) \
            everywire -- "${words[@]}" 2>/dev/null
    )) || COMPREPLY=()
    # Only what stands behind the last of these is replaced.
    local before=${last%"${last##*[:=]}"}
    if [[ -n $before && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"$before"}")
    fi
    if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -F _everywire everywire
