// An adapter of Weir: it declares names of EUDAQ's public interface, and holds no code of EUDAQ. See docs/adapters.md.
#ifndef WEIR_EUDAQ_EVENT_HH
#define WEIR_EUDAQ_EVENT_HH

#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "eudaq/Utils.hh"

namespace eudaq {

class Event;
using EventUP = std::unique_ptr<Event>;
using EventSP = std::shared_ptr<Event>;
using EventSPC = std::shared_ptr<const Event>;

/// Blocks of data, tags, numbers and a time. docs/adapters.md says how it travels.
class Event {
public:
    enum Flags : std::uint32_t { FLAG_BORE = 1, FLAG_EORE = 2, FLAG_FAKE = 4, FLAG_PACKET = 8, FLAG_TRIG = 16, FLAG_TIME = 32 };

    Event() = default;
    virtual ~Event() = default;

    static EventUP MakeUnique(const std::string &description) {
        auto event = std::make_unique<Event>();
        event->SetDescription(description);
        return event;
    }

    static EventSP MakeShared(const std::string &description) { return MakeUnique(description); }

    void SetBORE() { SetFlagBit(FLAG_BORE); }
    void SetEORE() { SetFlagBit(FLAG_EORE); }
    void SetFlagFake() { SetFlagBit(FLAG_FAKE); }
    void SetFlagPacket() { SetFlagBit(FLAG_PACKET); }
    void SetFlagTrigger() { SetFlagBit(FLAG_TRIG); }
    void SetFlagTimestamp() { SetFlagBit(FLAG_TIME); }
    void SetFlagBit(std::uint32_t bits) { flags_ |= bits; }
    void ClearFlagBit(std::uint32_t bits) { flags_ &= ~bits; }
    void SetFlag(std::uint32_t flags) { flags_ = flags; }
    bool IsBORE() const { return IsFlagBit(FLAG_BORE); }
    bool IsEORE() const { return IsFlagBit(FLAG_EORE); }
    bool IsFlagFake() const { return IsFlagBit(FLAG_FAKE); }
    bool IsFlagPacket() const { return IsFlagBit(FLAG_PACKET); }
    bool IsFlagTrigger() const { return IsFlagBit(FLAG_TRIG); }
    bool IsFlagTimestamp() const { return IsFlagBit(FLAG_TIME); }
    bool IsFlagBit(std::uint32_t bits) const { return (flags_ & bits) == bits; }
    std::uint32_t GetFlag() const { return flags_; }

    void SetVersion(std::uint32_t version) { version_ = version; }
    void SetRunN(std::uint32_t run) { run_ = run; }
    void SetEventN(std::uint32_t number) {
        number_ = number;
        has_number_ = true;
    }
    void SetStreamN(std::uint32_t stream) { stream_ = stream; }
    void SetDeviceN(std::uint32_t device) { stream_ = device; }
    void SetDescription(const std::string &description) { description_ = description; }

    /// The number of the trigger that this event belongs to.
    void SetTriggerN(std::uint32_t trigger, bool is_valid = true) {
        trigger_ = trigger;
        is_valid ? SetFlagBit(FLAG_TRIG) : ClearFlagBit(FLAG_TRIG);
    }

    /// From when to when; the adapter takes it as ns.
    void SetTimestamp(std::uint64_t begin, std::uint64_t end, bool is_valid = true) {
        begin_ = begin;
        end_ = end;
        is_valid ? SetFlagBit(FLAG_TIME) : ClearFlagBit(FLAG_TIME);
    }

    std::uint32_t GetVersion() const { return version_; }
    std::uint32_t GetRunN() const { return run_; }
    std::uint32_t GetEventN() const { return number_; }
    std::uint32_t GetStreamN() const { return stream_; }
    std::uint32_t GetDeviceN() const { return stream_; }
    std::uint32_t GetTriggerN() const { return trigger_; }
    std::uint64_t GetTimestampBegin() const { return begin_; }
    std::uint64_t GetTimestampEnd() const { return end_; }
    std::string GetDescription() const { return description_; }

    template <typename T> void SetTag(const std::string &name, const T &value) { tags_[name] = to_string(value); }
    bool HasTag(const std::string &name) const { return tags_.count(name) != 0; }
    std::string GetTag(const std::string &name, const std::string &absent = "") const {
        const auto found = tags_.find(name);
        return found == tags_.end() ? absent : found->second;
    }
    std::string GetTag(const std::string &name, const char *absent) const { return GetTag(name, std::string(absent)); }
    template <typename T> T GetTag(const std::string &name, T absent) const { return from_string<T>(GetTag(name), absent); }
    std::map<std::string, std::string> GetTags() const { return tags_; }

    /// The block of this number; of a type with several bytes, as they lie in memory.
    template <typename T> std::size_t AddBlock(std::uint32_t id, const std::vector<T> &data) {
        return AddBlock(id, data.data(), data.size() * sizeof(T));
    }

    /// So many bytes from an address on.
    template <typename T> std::size_t AddBlock(std::uint32_t id, const T *data, std::size_t bytes) {
        blocks_[id].clear();
        return AppendBlock(id, data, bytes);
    }

    template <typename T> std::size_t AppendBlock(std::uint32_t id, const std::vector<T> &data) {
        return AppendBlock(id, data.data(), data.size() * sizeof(T));
    }

    template <typename T> std::size_t AppendBlock(std::uint32_t id, const T *data, std::size_t bytes) {
        static_assert(std::is_trivially_copyable_v<T>, "a block holds plain values");
        auto &block = blocks_[id];
        const auto *const first = reinterpret_cast<const std::uint8_t *>(data);
        block.insert(block.end(), first, first + bytes);
        return blocks_.size();
    }

    std::size_t NumBlocks() const { return blocks_.size(); }
    std::size_t GetNumBlock() const { return blocks_.size(); }
    std::vector<std::uint32_t> GetBlockNumList() const {
        std::vector<std::uint32_t> ids;
        for (const auto &block : blocks_) {
            ids.push_back(block.first);
        }
        return ids;
    }
    std::vector<std::uint8_t> GetBlock(std::uint32_t id) const {
        const auto found = blocks_.find(id);
        return found == blocks_.end() ? std::vector<std::uint8_t>() : found->second;
    }

    void AddSubEvent(EventSPC event) { events_.push_back(std::move(event)); }
    std::uint32_t GetNumSubEvent() const { return static_cast<std::uint32_t>(events_.size()); }
    EventSPC GetSubEvent(std::uint32_t place) const { return events_.at(place); }

    virtual void Print(std::ostream &to, std::size_t indent = 0) const {
        const std::string blanks(indent, ' ');
        to << blanks << description_ << ": run " << run_ << ", event " << number_ << ", trigger " << trigger_ << ", time " << begin_ << " to "
           << end_ << ", flags " << flags_ << ", " << blocks_.size() << " blocks\n";
        for (const auto &event : events_) {
            event->Print(to, indent + 2);
        }
    }

    void Print() const { Print(std::cout); }

private:
    friend class Travelling;

    std::uint32_t flags_ = 0, version_ = 0, run_ = 0, number_ = 0, stream_ = 0, trigger_ = 0;
    bool has_number_ = false;
    std::uint64_t begin_ = 0, end_ = 0;
    std::string description_;
    std::map<std::string, std::string> tags_;
    std::map<std::uint32_t, std::vector<std::uint8_t>> blocks_;
    std::vector<EventSPC> events_;
};

/// An event as it travels, "EUD1" in docs/adapters.md. All is little-endian.
class Travelling {
public:
    static bool has_number(const Event &event) { return event.has_number_; }

    static std::size_t length(const Event &event) {
        std::size_t bytes = HEAD_BYTES + event.description_.size();
        for (const auto &[name, value] : event.tags_) {
            bytes += 8 + name.size() + value.size();
        }
        for (const auto &block : event.blocks_) {
            bytes += 8 + block.second.size();
        }
        for (const auto &part : event.events_) {
            bytes += length(*part);
        }
        return bytes;
    }

    static void write(const Event &event, std::uint8_t *to) { Travelling(to).event(event); }

private:
    static constexpr std::size_t HEAD_BYTES = 64;

    explicit Travelling(std::uint8_t *to) : to_(to) {}

    void event(const Event &event) {
        bytes("EUD1", 4);
        for (const std::size_t word : {length(event), std::size_t{event.flags_}, std::size_t{event.run_}, std::size_t{event.number_},
                                       std::size_t{event.trigger_}, std::size_t{event.stream_}, std::size_t{event.version_}}) {
            number(word, 4);
        }
        number(event.begin_, 8);
        number(event.end_, 8);
        for (const std::size_t word : {event.description_.size(), event.tags_.size(), event.blocks_.size(), event.events_.size()}) {
            number(word, 4);
        }
        bytes(event.description_.data(), event.description_.size());
        for (const auto &[name, value] : event.tags_) {
            number(name.size(), 4);
            number(value.size(), 4);
            bytes(name.data(), name.size());
            bytes(value.data(), value.size());
        }
        for (const auto &[id, data] : event.blocks_) {
            number(id, 4);
            number(data.size(), 4);
            bytes(data.data(), data.size());
        }
        for (const auto &part : event.events_) {
            this->event(*part);
        }
    }

    void number(std::uint64_t value, unsigned width) {
        for (unsigned at = 0; at < width; at++) {
            *to_++ = static_cast<std::uint8_t>(value >> (8 * at));
        }
    }

    void bytes(const void *data, std::size_t len) {
        if (len > 0) {
            std::memcpy(to_, data, len);
            to_ += len;
        }
    }

    std::uint8_t *to_;
};

}  // namespace eudaq

#endif
