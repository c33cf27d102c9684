// A copy of Mono's System.ServiceModel.dll without the sleeps of its dispatchers: 50 ms before each receive of net.tcp, 100 ms
// before each accept of HTTP.
//
//   unsleep.exe FROM TO
using System;
using System.Linq;
using Mono.Cecil;
using Mono.Cecil.Cil;

static class Unsleep
{
    static int Main(string[] args)
    {
        var places = new[] { "TcpDuplexSessionChannel::TryReceive", "ListenerLoopManager::LoopCore" };
        var module = ModuleDefinition.ReadModule(args[0]);
        int taken = 0;
        foreach (var method in module.GetTypes().SelectMany(type => type.Methods).Where(method => method.HasBody))
        {
            if (!places.Contains(method.DeclaringType.Name + "::" + method.Name)) continue;
            foreach (var call in method.Body.Instructions.ToArray())
            {
                var callee = call.Operand as MethodReference;
                if (callee == null || callee.FullName != "System.Void System.Threading.Thread::Sleep(System.Int32)") continue;
                // Others may jump to the instruction: its argument is taken from the stack, and nothing else is done.
                call.OpCode = OpCodes.Pop;
                call.Operand = null;
                taken++;
            }
        }
        if (taken != places.Length)
        {
            Console.Error.WriteLine("{0}: {1} sleeps found, not {2}", args[0], taken, places.Length);
            return 1;
        }
        module.Write(args[1]);
        return 0;
    }
}
