// Servants of callbacks.idl: the cycle of the first race.
#pragma once
#include "callbacks.hh"

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

class ListenerServant : public POA_derby::Listener {
public:
  void Hello() override { ++hellos_; }
  unsigned hellos() const { return hellos_; }

private:
  std::atomic<unsigned> hellos_{0};
};

class CallbackServant : public POA_derby::Callback {
public:
  explicit CallbackServant(PortableServer::POA_ptr poa) : poa_(PortableServer::POA::_duplicate(poa)) {}

  CORBA::ULong attach(derby::Listener_ptr sink) override {
    if (CORBA::is_nil(sink)) throw CORBA::BAD_PARAM(4, CORBA::COMPLETED_NO);
    std::lock_guard<std::mutex> held(lock_);
    sinks_[++last_] = derby::Listener::_duplicate(sink);
    return last_;
  }
  void detach(CORBA::ULong cookie) override {
    std::lock_guard<std::mutex> held(lock_);
    if (sinks_.erase(cookie) == 0) throw CORBA::BAD_PARAM(5, CORBA::COMPLETED_NO);
  }
  // Calls out without the lock.
  void fire() override {
    std::vector<derby::Listener_var> sinks;
    {
      std::lock_guard<std::mutex> held(lock_);
      for (auto& entry : sinks_) sinks.push_back(entry.second);
    }
    for (auto& sink : sinks) sink->Hello();
  }
  void destroy() override {
    PortableServer::ObjectId_var id = poa_->servant_to_id(this);
    poa_->deactivate_object(id);
  }

private:
  PortableServer::POA_var poa_;
  std::mutex lock_;
  std::map<CORBA::ULong, derby::Listener_var> sinks_;
  CORBA::ULong last_ = 0;
};

class FactoryServant : public POA_derby::CallbackFactory {
public:
  explicit FactoryServant(PortableServer::POA_ptr poa) : poa_(PortableServer::POA::_duplicate(poa)) {}

  derby::Callback_ptr create() override {
    CallbackServant* servant = new CallbackServant(poa_);
    PortableServer::ServantBase_var held = servant;
    PortableServer::ObjectId_var id = poa_->activate_object(servant);
    return servant->_this();
  }

private:
  PortableServer::POA_var poa_;
};
