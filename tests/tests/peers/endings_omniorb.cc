// A client of omniORB: `endings_omniorb REFERENCE`. Reads `call NUMBER SLOT` and `large NUMBER SLOT`, makes each call in a thread of its
// own, and prints what it was told: `NUMBER WORD TEXT` (see tests/tests/endings/callers.rs). omniORB itself chooses the connections.
#include "endings.hh"
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

static std::mutex out;

static void tell(long number, const char *word, const std::string &text)
{
    std::lock_guard<std::mutex> one(out);
    std::cout << number << ' ' << word << ' ' << text << std::endl;
}

static void call(test::Counter_ptr counter, bool large, long number)
{
    try {
        if (large) {
            test::Octets octets;
            octets.length(100 << 10);
            counter->large(octets);
            tell(number, "answered", "");
        } else if (counter->count(number) == number + 1) {
            tell(number, "answered", "");
        } else {
            tell(number, "no", "the answer of another call");
        }
    } catch (const CORBA::SystemException &e) {
        const char *word = e.completed() == CORBA::COMPLETED_YES  ? "ended"
                           : e.completed() == CORBA::COMPLETED_NO ? "no"
                                                                  : "maybe";
        const char *minor = e.NP_minorString();
        tell(number, word, std::string(e._name()) + " " + (minor ? minor : "?"));
    } catch (const CORBA::Exception &e) {
        tell(number, "maybe", e._name());
    }
}

int main(int argc, char **argv)
{
    // Calls share connections: those are the ones that suffer from each other.
    const char *options[][2] = {{"oneCallPerConnection", "0"}, {"maxGIOPConnectionPerServer", "10"},
                                {"verifyObjectExistsAndType", "0"}, {0, 0}};
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", options);
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    test::Counter_var counter = test::Counter::_unchecked_narrow(object);
    std::string word;
    long number, slot;
    while (std::cin >> word >> number >> slot)
        std::thread(call, test::Counter::_duplicate(counter), word == "large", number).detach();
    return 0;
}
