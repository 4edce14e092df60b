#compdef cellwright
# Completion of cellwright for zsh. The candidates come from the program itself.
_cellwright() {
    local line
    local -a candidates
    while IFS= read -r line; do
        if [[ $line == ":files" ]]; then
            _files
            return
        fi
        candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    # The words without their quotes.
    done < <("$words[1]" __complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    (( $#candidates )) && _describe 'cellwright' candidates
}
if [ "$funcstack[1]" = "_cellwright" ]; then
    _cellwright "$@"
else
    compdef _cellwright cellwright
fi
