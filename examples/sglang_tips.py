"""A program in sglang's language: only its import says lmc.

python examples/sglang_tips.py
"""

import lmc.sglang as sgl


@sgl.function
def tips(s, topic, points):
    s += sgl.system("You are brief.")
    s += sgl.user(f"Is {topic} a good topic?")
    s += sgl.assistant(sgl.select("good", ["yes", "no"]))

    forks = s.fork(len(points))  # computed once up to here, then side by side
    forks += lambda i: sgl.user(f"Say something about {points[i]}.")
    forks += sgl.assistant(sgl.gen("tip", max_tokens=16, stop="\n"))
    forks.join()

    s += sgl.user("Tips:\n" + "\n".join(s["tip"]) + "\nHow many are good?")
    s += sgl.assistant(sgl.gen_int("count", max_tokens=2))


if __name__ == "__main__":
    state = tips.run(topic="cats", points=["food", "sleep", "play"], temperature=0)
    print(state["good"], state["tip"], state["count"])

    for piece in tips.run(topic="dogs", points=["walks"], temperature=0, stream=True).text_iter():
        print(piece, end="", flush=True)
    print()

    rows = [{"topic": topic, "points": ["a", "b"]} for topic in ("tea", "rain")]
    for row, done in zip(rows, tips.run_batch(rows, temperature=0), strict=True):
        print(row["topic"], done["good"])
