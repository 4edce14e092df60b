# Completion of cellwright for bash. The candidates come from the program itself.
_cellwright() {
    local value description
    COMPREPLY=()
    compopt +o default 2>/dev/null
    while IFS=$'\t' read -r value description; do
        if [ "$value" = ":files" ]; then
            COMPREPLY=()
            compopt -o default 2>/dev/null
            return
        fi
        COMPREPLY+=("$(printf '%q' "$value")")
    done < <("$1" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _cellwright cellwright
