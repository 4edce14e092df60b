# Completion of cellwright for fish. The candidates come from the program itself.
function __cellwright_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete -- $words[2..-1] 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
            return
        end
        echo $line
    end
end
complete -c cellwright -f -a '(__cellwright_complete)'
