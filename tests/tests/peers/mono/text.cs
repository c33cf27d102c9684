// Values as text, the same in every program that takes part: what is checked, value by value.
using System;
using System.Collections;
using System.Globalization;
using System.Linq;
using System.Reflection;
using System.Runtime.Serialization;
using System.ServiceModel;
using System.Text;
using System.Xml;

static class Show
{
    public static string Of(object v)
    {
        if (v == null) return "null";
        if (v is string) return "\"" + v + "\"";
        if (v is bool) return (bool)v ? "true" : "false";
        if (v is char) return "'" + ((int)(char)v).ToString(CultureInfo.InvariantCulture) + "'";
        if (v is float) return XmlConvert.ToString((float)v);
        if (v is double) return XmlConvert.ToString((double)v);
        if (v is DateTime) return XmlConvert.ToString((DateTime)v, XmlDateTimeSerializationMode.RoundtripKind);
        if (v is TimeSpan) return XmlConvert.ToString((TimeSpan)v);
        if (v is byte[]) return "x" + string.Concat(((byte[])v).Select(b => b.ToString("x2")));
        if (v is Uri) return ((Uri)v).OriginalString;
        if (v is Enum) return v.ToString();
        if (v is IDictionary)
        {
            var parts = new System.Collections.Generic.List<string>();
            foreach (DictionaryEntry e in (IDictionary)v) parts.Add(Of(e.Key) + ":" + Of(e.Value));
            return "{" + string.Join(", ", parts) + "}";
        }
        if (v is IEnumerable) return "[" + string.Join(", ", ((IEnumerable)v).Cast<object>().Select(Of)) + "]";
        if (v is IFormattable) return ((IFormattable)v).ToString(null, CultureInfo.InvariantCulture);
        return v.GetType().Name + "{" + string.Join(", ", Fields(v.GetType()).Select(f => f.Name + "=" + Of(f.GetValue(v)))) + "}";
    }

    static System.Collections.Generic.IEnumerable<FieldInfo> Fields(Type type)
    {
        if (type == typeof(object)) return new FieldInfo[0];
        var own = type.GetFields(BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly);
        return Fields(type.BaseType).Concat(own.OrderBy(f => f.Name, StringComparer.Ordinal));
    }
}
