"""Samba's tests of single DCE/RPC messages (samba.tests.dcerpc.raw_protocol), one line each: `pass NAME` or `fail NAME WHY`.

Nobody is let in by our server who says that he is nobody, so the tests that begin so are done as the user.

Whom to ask is in the environment, as Samba's tests want it: SERVER, TARGET_HOSTNAME, USERNAME, PASSWORD, DOMAIN, REALM.
"""

import sys
import unittest

from samba.tests.dcerpc import raw_protocol, raw_testcase

raw_testcase.RawDCERPCTest.get_anon_creds = raw_testcase.RawDCERPCTest.get_user_creds


class Lines(unittest.TestResult):
    def say(self, *words):
        print(*words, flush=True)

    def name(self, test):
        return test.id().rsplit(".", 1)[-1]

    def addSuccess(self, test):
        self.say("pass", self.name(test))

    def why(self, error):
        return " ".join(f"{error[0].__name__}: {error[1]}".split())

    def addFailure(self, test, err):
        self.say("fail", self.name(test), self.why(err))

    addError = addFailure

    def addSkip(self, test, reason):
        self.say("skip", self.name(test), reason)


suite = unittest.defaultTestLoader.loadTestsFromModule(raw_protocol)
# Names after the program's narrow it down.
wanted = sys.argv[1:]
if wanted:
    chosen = [test for group in suite for test in group if test.id().rsplit(".", 1)[-1] in wanted]
    suite = unittest.TestSuite(chosen)
suite.run(Lines())
print("done", flush=True)
