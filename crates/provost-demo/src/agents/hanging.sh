# An agent that never ends, with a child that does not listen.
(
    trap '' HUP INT TERM
    while :; do sleep 1; done
) &
echo 'thinking about it'
while :; do sleep 1; done
