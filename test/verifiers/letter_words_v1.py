"""A taskset of verifiers for the tests: say a word that begins with a letter, then another one. Its harness plays within
the server, so that an episode needs no further process."""

import httpx
import verifiers.v1 as vf


class WordsData(vf.TaskData):
    letter: str


class WordsTask(vf.Task[WordsData]):
    @vf.reward(weight=2.0)
    async def begins(self, trace: vf.Trace) -> float:
        replies = [str(message.content) for message in trace.assistant_messages]
        return sum(reply.startswith(self.data.letter) for reply in replies) / 2

    @vf.metric
    async def characters(self, trace: vf.Trace) -> float:
        return float(sum(len(str(message.content)) for message in trace.assistant_messages))


class WordsConfig(vf.TasksetConfig):
    letters: str = "abcdefgh"


class WordsTaskset(vf.Taskset[WordsTask, WordsConfig]):
    def load(self):
        for letter in self.config.letters:
            yield WordsTask(WordsData(prompt=f"Say a word with {letter}.", letter=letter), self.config.task)


class WordsHarness(vf.Harness[vf.HarnessConfig]):
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        _, prompt = self.resolve_prompt(data)
        chat = [{"role": "user", "content": prompt}]
        async with httpx.AsyncClient(timeout=None) as client:
            for following in ("Another one.", None):
                response = await client.post(
                    f"{endpoint}/chat/completions",
                    json={"model": ctx.model, "messages": chat},
                    headers={"authorization": f"Bearer {secret}"},
                )
                response.raise_for_status()
                chat.append({"role": "assistant", "content": response.json()["choices"][0]["message"]["content"]})
                if following:
                    chat.append({"role": "user", "content": following})
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


__all__ = ["WordsTaskset", "WordsHarness"]
