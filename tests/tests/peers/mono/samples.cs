// What is sent in the checks, in both directions. The Rust tests have the same values.
using System;
using System.Collections.Generic;
using Everywire.Cellar;

static class Samples
{
    static readonly Guid guid = new Guid("00112233-4455-6677-8899-aabbccddeeff");
    static readonly DateTime utc = new DateTime(2020, 1, 2, 3, 4, 5, DateTimeKind.Utc);
    // Sub-second digits down to a tick, and no zone.
    static readonly DateTime unspecified = new DateTime(1999, 12, 31, 23, 59, 59, DateTimeKind.Unspecified).AddTicks(1234567);

    public const bool Boolean = true;
    public const byte Byte = 200;
    public const sbyte SByte = -100;
    public const short Int16 = -30000;
    public const ushort UInt16 = 60000;
    public const int Int32 = -2000000000;
    public const uint UInt32 = 4000000000;
    public const long Int64 = -9000000000000000000;
    public const ulong UInt64 = 18000000000000000000;
    public const float Single = 1.5f;
    public const double Double = -0.1;
    public const decimal Decimal = 123456789012345.6700m;
    public const char Char = 'ß';
    public const string String = "Grüße <&> \"'\n\t€ 😀 ]]>";
    public static readonly DateTime DateTime = utc;
    public static readonly TimeSpan TimeSpan = new TimeSpan(1, 2, 3, 4, 500);
    public static readonly Guid Guid = guid;
    public static readonly Uri Uri = new Uri("http://example.test/a?b=c&d");
    public static readonly byte[] Bytes = { 0, 1, 2, 127, 128, 254, 255 };
    public const Grape Grape = Everywire.Cellar.Grape.PinotNoir;

    public static readonly bool[] Booleans = { true, false, true };
    public static readonly int[] Ints = { 1, -2, 70000, 0, int.MinValue, int.MaxValue };
    public static readonly long[] Longs = { 0, -1, long.MaxValue, long.MinValue };
    public static readonly double[] Doubles = { 0, 1.5, -2.25, double.PositiveInfinity, double.NegativeInfinity, double.NaN, 1e300 };
    public static readonly string[] Strings = { "a", "", null, "d e" };
    public static readonly DateTime[] Dates = { utc, unspecified };
    public static readonly Guid[] Guids = { guid, Guid.Empty };
    public static readonly Grape[] Grapes = { Everywire.Cellar.Grape.Syrah, Everywire.Cellar.Grape.PinotNoir, Everywire.Cellar.Grape.Riesling };
    public static readonly List<Label> Labels = new List<Label> { new Label { Text = "one", Year = 1901 }, new Label { Text = "", Year = 0 } };
    public static readonly Dictionary<string, int> Stock = new Dictionary<string, int> { { "red", 3 }, { "white", -4 } };
    public static readonly Dictionary<int, Label> Places = new Dictionary<int, Label> { { -1, new Label { Text = "minus", Year = -1 } }, { 7, new Label { Text = "seven", Year = 1977 } } };

    public static readonly Primitives Primitives = new Primitives
    {
        Boolean = Boolean, Byte = Byte, Bytes = Bytes, Char = Char, DateTime = unspecified, Decimal = Decimal, Double = Double, Guid = Guid,
        Int16 = Int16, Int32 = Int32, Int64 = Int64, SByte = SByte, Single = Single, String = String, TimeSpan = TimeSpan,
        UInt16 = UInt16, UInt32 = UInt32, UInt64 = UInt64, Uri = Uri,
    };
    public static readonly Maybe Maybe = new Maybe { Date = utc, Double = 2, Grape = Everywire.Cellar.Grape.Syrah, Int = 0, Nothing = null };
    public static readonly Maybe MaybeNot = new Maybe();
    public static readonly Rack Rack = new Rack
    {
        Front = new Label { Text = "front", Year = 2001 },
        Labels = Labels,
        Next = new Rack { Front = null, Labels = new List<Label>(), Next = null, Stock = Stock },
        Stock = new Dictionary<string, int>(),
    };
    public static readonly OrderedShelf Shelf = new OrderedShelf { A = 1, B = 2, C = "three", Seldom = 0 };
    public static readonly Wine Wine = new Champagne { Name = "Brut", Bar = 6.25, House = "R." };
    public static readonly Wine[] Wines = { new Wine { Name = "plain" }, new Sparkling { Name = "Sekt", Bar = 3 }, Wine };
}
