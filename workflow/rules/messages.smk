# What Snakemake prints: a line for each tenth of the jobs, each failure with the end of its log, an
# unknown target in one line, and its other messages. A dry run lists its jobs. Snakemake's log file
# has everything; `--printshellcmds` and `--verbose` print it, too.
import logging
import re

LOG_LINES = 40
"""Maximum number of lines shown of a failed job's log."""
HIDDEN = "workflow_started resources_info job_started job_finished shellcmd".split()
REPEATED = re.compile(
    "CalledProcessError|At least one job did not complete|Select jobs to execute|Execute [0-9]+"
    "|Touching output file|Complete log|Using shell"
)
"""Messages that repeat an event, or are the same in every run."""
SHOWN_BY_USER = workflow.logger_manager.settings


class ShortMessages(logging.StreamHandler):
    """Prints few lines. `emit` of its base class never raises, which would stop the scheduler."""

    terminator = ""
    names = {}
    """Of jobs, by their number."""

    def format(self, record):
        lines = self.lines(vars(record), super().format(record))
        return "".join(f"{line}\n" for line in lines)

    def lines(self, fields, message):
        """The lines for an event, if any."""
        event, job = fields.get("event"), fields.get("jobid")
        if event == "job_info":
            words = [fields["rule_name"], "/".join(fields["wildcards"].values())]
            self.names[job] = fields["rule_msg"] or " ".join(words).strip()
        if event in ("job_info", "run_info"):
            shown = self.names[job] if event == "job_info" else message
            return [shown] if SHOWN_BY_USER.dryrun else []
        if event == "progress":
            done, total = fields["done"], fields["total"]
            is_next_tenth = done * 10 // total > (done - 1) * 10 // total
            return [f"{done} of {total} jobs done"] if is_next_tenth else []
        if event == "job_error":
            # A cluster has further logs, which repeat the rule's.
            logs = (Path(log) for log in fields["log"] if Path(log).exists())
            texts = filter(None, (log.read_text(errors="replace") for log in logs))
            log = next(texts, "").splitlines()
            return [f"failed: {self.names.get(job, job)}", *log[-LOG_LINES:]]
        if unknown := re.search(r"No rule to produce (\S+)", message):
            known = ", ".join([*TARGETS, f"{TABLES}/measured/STUDY/VARIANT"])
            expected = f"one of {known}, or a file that a rule makes"
            return [f"error: target: expected {expected}, got '{unknown[1]}'"]
        return [] if event in HIDDEN or REPEATED.search(message) else [message]


if not (SHOWN_BY_USER.printshellcmds or SHOWN_BY_USER.verbose):
    for handler in [h for h in logger.handlers if h.name == "DefaultStreamHandler"]:
        logger.removeHandler(handler)
        logger.addHandler(ShortMessages(handler.stream))
# If the disk is full, the failed job reports it, not every line of Snakemake's log file.
logging.raiseExceptions = False
