# An agent in a terminal that costs nothing: it waits for a line, writes what
# happened as pi does, and asks, with a bell, where a line says so.
name=$BENCH_NAME
file=$BENCH_FOLDER/$name.jsonl
said() {
    printf '{"type":"message","message":{"role":"%s","content":[{"type":"text","text":"%s"}]%s}}\n' \
        "$1" "$2" "$3" >> "$file"
}
ends() { said assistant "@$name → @NEXUS [$1]: $2" ',"stopReason":"stop"'; }
printf '{"type":"session","id":"%s","cwd":"%s"}\n' "$name" "$(pwd -P)" >> "$file"
stty -echo
while printf '\033[2J\033[H> ' && IFS= read -r line; do
    said user "$line" ''
    topic=${line#*[} topic=${topic%%]*}
    case $line in
    *prompt*)
        printf '{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"echo well"}}],"stopReason":"toolUse"}}\n' >> "$file"
        printf '\033[2J\033[HAllow this command?\n  $ echo well\n\n* 1. Yes\n'
        stty -icanon min 1
        begin=$(date +%s%N)
        printf '\a'
        dd bs=1 count=1 2> /dev/null > /dev/null
        end=$(date +%s%N)
        stty icanon
        echo $((end - begin)) >> "$BENCH_FOLDER/$name.times"
        ends "$topic" done
        ;;
    *BOOTSTRAP*) ends BOOTSTRAP 'Identity confirmed. Context loaded. Ready' ;;
    *) ends "$topic" done ;;
    esac
done
